"""Constants of the elementwise functions: one record for each float type.

`docs/polynomials.py` derives every one of them again and compares. Coefficients are in order of rising
powers. Errors are those of the approximation with rounded coefficients, before any rounding of the
evaluation; u is half an ulp of 1 (2^-24, 2^-53).
"""

from __future__ import annotations

from tilewright.records import dataclass
from tilewright.spec.dtype import F32, F64, DType


@dataclass(frozen=True)
class Constants:
    """What the functions of `micro.math` need to know of one float type.

    Attributes
    ----------
    mantissa_bits, exponent_bias : of the IEEE format; the mantissa without its hidden bit.
    headroom : powers of two by which a result that may be subnormal is kept larger until its last
        multiplication, so that it is rounded once; between what results lack and what the format has.
    log2_e : 1 / ln 2.
    ln2_high, ln2_low : ln 2 in two parts; the first is so short that its product with any exponent of the
        format is exact, with fused multiply-add or without.
    exp_least, exp_most : below the first exp(x) rounds to 0, above the second to infinity.
    exp_far : exp(r) = 1 + r + r²·P(r) on |r| <= ln 2; relative error 2^-26.0 and 2^-56.3 (f32, f64).
    exp_near : exp(r) = 1 + r·P(r) on |r| <= ln 2 / 2, as short as 2 ulp of the result allow; error below
        1.12 ulp of f32, 0.05 ulp of f64.
    growth : exp(r) = 1 + r + r²·P(r) on |r| <= ln 2 / 2; relative error 2^-28.2 and 2^-56.6.
    erf_border, erf_one : where the second approximation of erf begins, and from where erf(x) rounds to 1.
    erf_near : erf(x) = x + x·P(x²) below the border; relative error 2^-25.6 and 2^-56.0.
    erf_far : erf(x) = 1 - exp(P(x)) beyond it; absolute error 2^-29.4 and 2^-57.0.
    silu_vanishes, gelu_vanishes, gelu_tanh_vanishes : below minus these the results round to -0.
    mills_slope, mills_numerator, mills_denominator : exp(-a²/2) / Φ(-a) = slope·a + P(a) / Q(a) for
        0 <= a <= gelu_vanishes, with P(0) = 2 and Q(0) = 1; relative error of the sum 2^-28.7 and 2^-57.6.
        All coefficients are positive: no step cancels.
    gelu_linear_high, gelu_linear_low : √(8/π) in two parts, the first of half the mantissa.
    gelu_cubic_high, gelu_cubic_low : 0.044715·√(8/π) in two parts.
    """

    mantissa_bits: int
    exponent_bias: int
    headroom: int
    log2_e: float
    ln2_high: float
    ln2_low: float
    exp_least: float
    exp_most: float
    exp_far: tuple[float, ...]
    exp_near: tuple[float, ...]
    growth: tuple[float, ...]
    erf_border: float
    erf_one: float
    erf_near: tuple[float, ...]
    erf_far: tuple[float, ...]
    silu_vanishes: float
    gelu_vanishes: float
    gelu_tanh_vanishes: float
    mills_slope: float
    mills_numerator: tuple[float, ...]
    mills_denominator: tuple[float, ...]
    gelu_linear_high: float
    gelu_linear_low: float
    gelu_cubic_high: float
    gelu_cubic_low: float

    def __post_init__(self) -> None:
        assert self.mills_numerator[0] == 2.0
        assert self.mills_denominator[0] == 1.0


_F32 = Constants(
    mantissa_bits=23,
    exponent_bias=127,
    headroom=64,
    log2_e=1.4426950216293335,
    ln2_high=0.693145751953125,
    ln2_low=1.428606765330187e-06,
    exp_least=-104.0,
    exp_most=89.0,
    exp_far=(
        0.5000003576278687,
        0.1666661649942398,
        0.04166116565465927,
        0.008335908874869347,
        0.0014106412418186665,
        0.00019646550936158746,
    ),
    exp_near=(
        0.9999995231628418,
        0.4999909996986389,
        0.16667866706848145,
        0.041904203593730927,
        0.008290445432066917,
    ),
    growth=(
        0.4999999403953552,
        0.16666516661643982,
        0.04166809841990471,
        0.008369196206331253,
        0.0013839455787092447,
    ),
    erf_border=0.9375,
    erf_one=3.9375,
    erf_near=(
        0.12837915122509003,
        -0.3761247992515564,
        0.11281617730855942,
        -0.02675856277346611,
        0.004980682861059904,
        -0.0005925095756538212,
    ),
    erf_far=(
        -0.00023522104311268777,
        -1.127511978149414,
        -0.6374582648277283,
        -0.10368896275758743,
        0.022109780460596085,
        -0.0030137894209474325,
        0.00019293345394544303,
    ),
    silu_vanishes=109.0,
    gelu_vanishes=14.5,
    gelu_tanh_vanishes=10.9,
    mills_slope=2.5066282749176025,
    mills_numerator=(2.0, 1.2590363025665283, 0.41677558422088623, 0.07508359104394913, 0.006328180897980928),
    mills_denominator=(
        1.0,
        1.0849478244781494,
        0.5658840537071228,
        0.17101652920246124,
        0.029968753457069397,
        0.0025242618285119534,
    ),
    gelu_linear_high=1.595703125,
    gelu_linear_low=6.599660264328122e-05,
    gelu_cubic_high=0.07135481387376785,
    gelu_cubic_low=2.3988324659995897e-09,
)

_F64 = Constants(
    mantissa_bits=52,
    exponent_bias=1023,
    headroom=600,
    log2_e=1.4426950408889634,
    ln2_high=0.6931471805598903,
    ln2_low=5.497923018708371e-14,
    exp_least=-746.0,
    exp_most=710.0,
    exp_far=(
        0.4999999999999993,
        0.16666666666666935,
        0.041666666666702115,
        0.0083333333332702,
        0.0013888888883573267,
        0.00019841269892583024,
        2.4801590832138424e-05,
        2.7557300743127247e-06,
        2.75561575174105e-07,
        2.5055011273621654e-08,
        2.1062374182081904e-09,
        1.593749079059061e-10,
    ),
    exp_near=(
        1.0,
        0.5000000000000024,
        0.16666666666667448,
        0.041666666666418065,
        0.008333333332749613,
        0.001388888897212592,
        0.00019841271254925118,
        2.4801464528539663e-05,
        2.755592962796656e-06,
        2.764011507683527e-07,
        2.554860418345414e-08,
    ),
    growth=(
        0.5000000000000011,
        0.1666666666666621,
        0.04166666666652311,
        0.008333333333431664,
        0.0013888888947270759,
        0.0001984126994749763,
        2.480148758386821e-05,
        2.755698056292797e-06,
        2.763272786851422e-07,
        2.5245976663269797e-08,
    ),
    erf_border=1.0,
    erf_one=5.9375,
    erf_near=(
        0.12837916709551256,
        -0.37612638903183343,
        0.11283791670936968,
        -0.026866170641965063,
        0.005223977596809458,
        -0.0008548325489673573,
        0.00012055280667967821,
        -1.4924469468931522e-05,
        1.6444203431047605e-06,
        -1.6184430610875154e-07,
        1.3618711935639533e-08,
        -7.611706713369712e-10,
    ),
    erf_far=(
        -5.13381326874097e-07,
        -1.12837399037811,
        -0.6366440610041529,
        -0.10270227365509439,
        0.01898801152886729,
        0.00041357885003643724,
        -0.001918990125947311,
        0.0007730794062319559,
        -0.0001365774666959295,
        -1.951203664479856e-05,
        2.252855872439778e-05,
        -8.57742775473529e-06,
        2.1144702634550465e-06,
        -3.6950447886530944e-07,
        4.592494800966001e-08,
        -3.889239718179684e-09,
        2.0198967242078645e-10,
        -4.86390794430025e-12,
    ),
    silu_vanishes=760.0,
    gelu_vanishes=38.8,
    gelu_tanh_vanishes=21.9,
    mills_slope=2.5066282746310007,
    mills_numerator=(
        2.0,
        2.476049994301641,
        1.567672295187048,
        0.6443511220814288,
        0.18672901984790907,
        0.03927185940807116,
        0.0059780349189307285,
        0.0006358773505814606,
        4.3122328531881704e-05,
        1.437459134768599e-06,
    ),
    mills_denominator=(
        1.0,
        1.693454573663455,
        1.4184656745529005,
        0.7608013571922558,
        0.2868960351383816,
        0.0791606268212455,
        0.01617112249532261,
        0.0024192974829768802,
        0.00025482528752516386,
        1.720332007159244e-05,
        5.734632252571419e-07,
    ),
    gelu_linear_high=1.5957691073417664,
    gelu_linear_low=1.426396435433791e-08,
    gelu_cubic_high=0.07135481627260025,
    gelu_cubic_low=-6.175149918155315e-19,
)

CONSTANTS: dict[DType, Constants] = {F32: _F32, F64: _F64}
