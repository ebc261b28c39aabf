! Products as Fortran writes them: explicit and assumed shapes, arguments by reference, DO loops of any order.

module products
  use iso_c_binding
  implicit none
contains

  ! explicit_shapes(f64 c[m*n] alone, f64 a[m*k], f64 b[k*n], int m, int n, int k) replaced mk,kn->mn
  subroutine explicit_shapes(c, a, b, m, n, k) bind(c)
    integer(c_int), value :: m, n, k
    real(c_double), intent(inout) :: c(m, n)
    real(c_double), intent(in) :: a(m, k), b(k, n)
    integer :: i, j, p
    do j = 1, n
      do p = 1, k
        do i = 1, m
          c(i, j) = c(i, j) + a(i, p) * b(p, j)
        end do
      end do
    end do
  end subroutine

  ! by_reference(f32 c[ldc*n] alone, f32 a[lda*k], f32 b[ldb*n], &int m, &int n, &int k, &int ldc=m+1, &int lda=m+2, &int ldb=k+3) replaced mk,kn->mn
  subroutine by_reference(c, a, b, m, n, k, ldc, lda, ldb) bind(c)
    integer(c_int) :: m, n, k, ldc, lda, ldb
    real(c_float) :: c(ldc, *), a(lda, *), b(ldb, *)
    integer :: i, j, p
    do i = 1, m
      do j = 1, n
        do p = 1, k
          c(i, j) = c(i, j) + a(i, p) * b(p, j)
        end do
      end do
    end do
  end subroutine

  ! reference_dgemm(f64 c[ldc*n] alone, f64 a[lda*k], f64 b[ldb*n], int m, int n, int k, int ldc=m+1, int lda=m+2, int ldb=k+3, f64 alpha=3, f64 beta=-2) replaced mk,kn->mn
  subroutine reference_dgemm(c, a, b, m, n, k, ldc, lda, ldb, alpha, beta) bind(c)
    integer(c_int), value :: m, n, k, ldc, lda, ldb
    real(c_double), value :: alpha, beta
    real(c_double) :: c(ldc, *), a(lda, *), b(ldb, *)
    real(c_double) :: temp
    integer :: i, j, p
    do j = 1, n
      do i = 1, m
        c(i, j) = beta * c(i, j)
      end do
      do p = 1, k
        temp = alpha * b(p, j)
        do i = 1, m
          c(i, j) = c(i, j) + temp * a(i, p)
        end do
      end do
    end do
  end subroutine

  ! dot_products(f64 c[m*n] alone, f64 a[m*k], f64 b[k*n], int m, int n, int k) replaced mk,kn->mn set
  subroutine dot_products(c, a, b, m, n, k) bind(c)
    integer(c_int), value :: m, n, k
    real(c_double), intent(out) :: c(m, n)
    real(c_double), intent(in) :: a(k, m), b(k, n)
    real(c_double) :: s
    integer :: i, j, p
    do i = 1, m
      do j = 1, n
        s = 0
        do p = 1, k
          s = s + a(p, i) * b(p, j)
        end do
        c(i, j) = s
      end do
    end do
  end subroutine

  ! steps_of_two(i32 c[m*n] alone, i32 a[m*k], i32 b[k*n], int m, int n, int k) replaced mk,kn->mn
  subroutine steps_of_two(c, a, b, m, n, k) bind(c)
    integer(c_int), value :: m, n, k
    integer(c_int32_t) :: c(m, n), a(m, k), b(k, n)
    integer :: i, j, p
    do p = k, 1, -2
      do j = 2, n, 3
        do i = 1, m, 2
          c(i, j) = c(i, j) + a(i, p) * b(p, j)
        end do
      end do
    end do
  end subroutine

  ! static_shapes(f32 c[40*30] alone, f32 a[40*50], f32 b[50*30]) replaced mk,kn->mn
  subroutine static_shapes(c, a, b) bind(c)
    real(c_float) :: c(40, 30), a(40, 50), b(50, 30)
    integer :: i, j, p
    do j = 1, 30
      do i = 1, 40
        do p = 1, 50
          c(i, j) = c(i, j) + a(i, p) * b(p, j)
        end do
      end do
    end do
  end subroutine

  ! assumed(f64 c[m*n] alone, f64 a[m*k], f64 b[k*n], int m, int n, int k) any
  subroutine assumed(c, a, b, m, n, k) bind(c)
    integer(c_int), value :: m, n, k
    real(c_double) :: c(m, n), a(m, k), b(k, n)
    call multiply(c, a, b)
  end subroutine

  subroutine multiply(c, a, b)
    real(c_double) :: c(:, :), a(:, :), b(:, :)
    integer :: i, j, p
    do j = 1, size(c, 2)
      do p = 1, size(a, 2)
        do i = 1, size(c, 1)
          c(i, j) = c(i, j) + a(i, p) * b(p, j)
        end do
      end do
    end do
  end subroutine

  ! symmetric_update(f64 c[n*n] alone, f64 a[n*k], int n, int k) replaced mk,kn->mn triangle
  subroutine symmetric_update(c, a, n, k) bind(c)
    integer(c_int), value :: n, k
    real(c_double) :: c(n, n), a(n, k)
    integer :: i, j, p
    do j = 1, n
      do p = 1, k
        do i = j, n
          c(i, j) = c(i, j) + a(i, p) * a(j, p)
        end do
      end do
    end do
  end subroutine

  ! matrix_times_vector(f64 y[m] alone, f64 a[m*k], f64 x[k], int m, int k) replaced mk,k->m
  subroutine matrix_times_vector(y, a, x, m, k) bind(c)
    integer(c_int), value :: m, k
    real(c_double) :: y(m), a(m, k), x(k)
    integer :: i, p
    do p = 1, k
      do i = 1, m
        y(i) = y(i) + a(i, p) * x(p)
      end do
    end do
  end subroutine

  ! left_early(i32 c[n*n] alone, i32 a[n*n], i32 b[n*n], int n) refused
  subroutine left_early(c, a, b, n) bind(c)
    integer(c_int), value :: n
    integer(c_int32_t) :: c(n, n), a(n, n), b(n, n)
    integer :: i, j, p
    do j = 1, n
      do i = 1, n
        do p = 1, n
          if (a(i, p) == 1000) exit
          c(i, j) = c(i, j) + a(i, p) * b(p, j)
        end do
      end do
    end do
  end subroutine

  ! conditional(i32 c[n*n] alone, i32 a[n*n], i32 b[n*n], int n) refused
  subroutine conditional(c, a, b, n) bind(c)
    integer(c_int), value :: n
    integer(c_int32_t) :: c(n, n), a(n, n), b(n, n)
    integer :: i, j, p
    do j = 1, n
      do p = 1, n
        if (b(p, j) /= 0) then
          do i = 1, n
            c(i, j) = c(i, j) + a(i, p) * b(p, j)
          end do
        end if
      end do
    end do
  end subroutine

end module
