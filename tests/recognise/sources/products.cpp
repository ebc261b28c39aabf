// Products as C++ writes them: templates, accessors, views, std::vector, lambdas, references.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

template <class T> class Matrix {
  public:
    Matrix(T *data, int rows, int columns) : data_(data), rows_(rows), columns_(columns) {}
    T &operator()(int row, int column) { return data_[row * columns_ + column]; }
    const T &operator()(int row, int column) const { return data_[row * columns_ + column]; }
    int rows() const { return rows_; }
    int columns() const { return columns_; }

  private:
    T *data_;
    int rows_, columns_;
};

template <class T> void multiply(Matrix<T> &c, const Matrix<T> &a, const Matrix<T> &b) {
    for (int i = 0; i < c.rows(); ++i)
        for (int j = 0; j < c.columns(); ++j)
            for (int p = 0; p < a.columns(); ++p)
                c(i, j) += a(i, p) * b(p, j);
}

extern "C" {

// accessors_f32(f32 c[m*n], f32 a[m*k], f32 b[k*n], int m, int n, int k) replaced mk,kn->mn
void accessors_f32(float *c, float *a, float *b, int m, int n, int k) {
    Matrix<float> product(c, m, n);
    multiply(product, {a, m, k}, {b, k, n});
}

// accessors_i32(i32 c[m*n], i32 a[m*k], i32 b[k*n], int m, int n, int k) replaced mk,kn->mn
void accessors_i32(int32_t *c, int32_t *a, int32_t *b, int m, int n, int k) {
    Matrix<int32_t> product(c, m, n);
    multiply(product, {a, m, k}, {b, k, n});
}

// vectors(f64 c[n*n], f64 a[n*n], f64 b[n*n], i64 n>=0) replaced mk,kn->mn set
void vectors(double *c, const double *a, const double *b, std::size_t n) {
    std::vector<double> left(a, a + n * n), right(b, b + n * n), sums(n * n);
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j) {
            double sum = 0;
            for (std::size_t p = 0; p < n; ++p)
                sum += left[i * n + p] * right[p * n + j];
            sums[i * n + j] = sum;
        }
    for (std::size_t i = 0; i < n * n; ++i)
        c[i] = sums[i];
}

static void multiply_vectors(std::vector<float> &c, const std::vector<float> &a, const std::vector<float> &b, int n) {
    for (int i = 0; i < n; ++i)
        for (int p = 0; p < n; ++p)
            for (int j = 0; j < n; ++j)
                c[i * n + j] += a[i * n + p] * b[p * n + j];
}

// vectors_by_reference(f32 c[n*n], f32 a[n*n], f32 b[n*n], int n>=0) any
void vectors_by_reference(float *c, const float *a, const float *b, int n) {
    std::vector<float> left(a, a + n * n), right(b, b + n * n), sums(c, c + n * n);
    multiply_vectors(sums, left, right, n);
    for (int i = 0; i < n * n; ++i)
        c[i] = sums[i];
}

// arrays(f32 c[32*48], f32 a[32*40], f32 b[40*48]) replaced mk,kn->mn
void arrays(std::array<std::array<float, 48>, 32> &c, const std::array<std::array<float, 40>, 32> &a,
            const std::array<std::array<float, 48>, 40> &b) {
    for (std::size_t i = 0; i < c.size(); ++i)
        for (std::size_t j = 0; j < c[i].size(); ++j)
            for (std::size_t p = 0; p < b.size(); ++p)
                c[i][j] += a[i][p] * b[p][j];
}

// lambdas(f64 c[m*n], f64 a[m*k], f64 b[k*n], int m, int n, int k) replaced mk,kn->mn
void lambdas(double *c, const double *a, const double *b, int m, int n, int k) {
    auto at = [](auto *data, int columns) {
        return [=](int row, int column) -> auto & { return data[row * columns + column]; };
    };
    auto C = at(c, n);
    auto A = at(a, k);
    auto B = at(b, n);
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j)
            for (int p = 0; p < k; ++p)
                C(i, j) += A(i, p) * B(p, j);
}

// spans(f32 c[m*n], f32 a[m*k], f32 b[k*n], i64 m>=0, i64 n>=0, i64 k>=0) replaced mk,kn->mn
void spans(float *c, const float *a, const float *b, std::size_t m, std::size_t n, std::size_t k) {
    std::span<float> sums(c, m * n);
    std::span<const float> left(a, m * k), right(b, k * n);
    for (std::size_t i = 0; i < m; ++i)
        for (std::size_t p = 0; p < k; ++p)
            for (std::size_t j = 0; j < n; ++j)
                sums[i * n + j] += left[i * k + p] * right[p * n + j];
}

// references(f64 c[m*n], f64 a[m*k], f64 b[k*n], int m, int n, int k) replaced mk,kn->mn set
void references(double *c, const double *a, const double *b, int m, int n, int k) {
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
            double &sum = c[i * n + j];
            sum = 0;
            for (int p = 0; p < k; ++p)
                sum += a[i * k + p] * b[p * n + j];
        }
}

// maybe_throws(i32 c[n*n], i32 a[n*n], i32 b[n*n], int n) refused
void maybe_throws(int32_t *c, const int32_t *a, const int32_t *b, int n) {
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j)
            for (int p = 0; p < n; ++p) {
                if (a[i * n + p] == 1 << 30)
                    throw a;
                c[i * n + j] += a[i * n + p] * b[p * n + j];
            }
}

// checked_vectors(i32 c[n*n], i32 a[n*n], i32 b[n*n], int n>=0) any
void checked_vectors(int32_t *c, const int32_t *a, const int32_t *b, int n) {
    std::vector<int32_t> left(a, a + n * n), right(b, b + n * n), sums(n * n);
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j)
            for (int p = 0; p < n; ++p)
                sums.at(i * n + j) += left.at(i * n + p) * right.at(p * n + j);
    for (int i = 0; i < n * n; ++i)
        c[i] = sums[i];
}

// caught_out_of_range(u32 c[n*n], u32 a[n*n], u32 b[n*n], int n>=2, int length=n*n-3) any
void caught_out_of_range(uint32_t *c, const uint32_t *a, const uint32_t *b, int n, int length) {
    std::vector<uint32_t> left(a, a + length), right(b, b + n * n);
    try {
        for (int i = 0; i < n; ++i)
            for (int j = 0; j < n; ++j)
                for (int p = 0; p < n; ++p)
                    c[i * n + j] += left.at(i * n + p) * right.at(p * n + j);
    } catch (const std::out_of_range &) {
    }
}

// rows_of_vectors(f32 c[n*n], f32 a[n*n], f32 b[n*n], int n>=0) replaced mk,kn->mn
void rows_of_vectors(float *c, const float *a, const float *b, int n) {
    std::vector<std::vector<float>> left, right, sums;
    for (int i = 0; i < n; ++i) {
        left.emplace_back(a + i * n, a + i * n + n);
        right.emplace_back(b + i * n, b + i * n + n);
        sums.emplace_back(n, 0.0f);
    }
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j)
            for (int p = 0; p < n; ++p)
                sums[i][j] += left[i][p] * right[p][j];
    for (int i = 0; i < n * n; ++i)
        c[i] = sums[i / n][i % n];
}

// sizes_of_vectors(f32 c[n*n], f32 a[n*n], f32 b[n*n], int n>=0) replaced mk,kn->mn set
void sizes_of_vectors(float *c, const float *a, const float *b, int n) {
    using Rows = std::vector<std::vector<float>>;
    Rows left, right, sums;
    for (int i = 0; i < n; ++i) {
        left.emplace_back(a + i * n, a + i * n + n);
        right.emplace_back(b + i * n, b + i * n + n);
        sums.emplace_back(n, 0.0f);
    }
    for (std::size_t i = 0; i < left.size(); ++i)
        for (std::size_t j = 0; j < right[0].size(); ++j) {
            float sum = 0;
            for (std::size_t p = 0; p < right.size(); ++p)
                sum += left[i][p] * right[p][j];
            sums[i][j] = sum;
        }
    for (int i = 0; i < n * n; ++i)
        c[i] = sums[i / n][i % n];
}

// owned_rows(f64 c[n*n], f64 a[n*n], f64 b[n*n], int n>=0) replaced mk,kn->mn
void owned_rows(double *c, const double *a, const double *b, int n) {
    std::vector<std::unique_ptr<double[]>> left(n), right(n);
    for (int i = 0; i < n; ++i) {
        left[i] = std::make_unique<double[]>(n);
        right[i] = std::make_unique<double[]>(n);
        std::copy(a + i * n, a + i * n + n, left[i].get());
        std::copy(b + i * n, b + i * n + n, right[i].get());
    }
    for (int i = 0; i < n; ++i)
        for (int p = 0; p < n; ++p)
            for (int j = 0; j < n; ++j)
                c[i * n + j] += left[i][p] * right[p][j];
}
}
