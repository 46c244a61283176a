#include "DNDS/Array/ArrayMatricesView.hpp"

#include <algorithm>
#include <limits>

namespace DNDS {

namespace {

/// Checks one dimension of a matrix of row `i` against the common one.
void checkDimension(rowsize declared, rowsize common, rowsize given, const char *what, index i,
                    std::string_view label) {
    if (common < 0) // no limit, or not chosen
        return;
    DNDS_CHECK(declared == NonUniformSize ? given <= common : given == common, ArgumentError,
               "{}: the matrix of row {} cannot have {} {}, {} {}", label, i, given, what,
               declared == NonUniformSize ? "there is room for" : "all rows have", common);
}

/// Reals in front of the first matrix.
index headerSize(std::span<const MatrixShape> shapes) { return 1 + 2 * static_cast<index>(shapes.size()); }

} // namespace

// Signs and size first, then the limits of the array's type.
void checkMatrix(MatrixShape declared, MatrixShape common, index i, MatrixShape shape, std::string_view label) {
    DNDS_CHECK(shape.rows >= 0 && shape.cols >= 0, ArgumentError, "{}: a matrix cannot be {} x {}", label, shape.rows,
               shape.cols);
    DNDS_CHECK(index{shape.rows} * shape.cols <= std::numeric_limits<rowsize>::max(), ArgumentError,
               "{}: a matrix of {} x {} has too many elements for one row", label, shape.rows, shape.cols);
    checkDimension(declared.rows, common.rows, shape.rows, "rows", i, label);
    checkDimension(declared.cols, common.cols, shape.cols, "columns", i, label);
    // the differing dimension follows from the row's size, unless the other one is 0
    const bool one = (declared.rows == NonUniformSize) != (declared.cols == NonUniformSize);
    DNDS_CHECK(!one || (declared.rows == NonUniformSize ? shape.cols : shape.rows) > 0, ArgumentError,
               "{}: the dimension that all matrices share must not be 0", label);
}

// Sums in 64 bits; the limit is checked after each matrix.
rowsize matrixBatchRowSize(std::span<const MatrixShape> shapes, std::string_view label) {
    if (shapes.empty())
        return 0;
    index size = headerSize(shapes);
    for (const MatrixShape &shape : shapes) {
        checkMatrix({}, {DynamicSize, DynamicSize}, 0, shape, label);
        size += shape.size();
        DNDS_CHECK(size <= std::numeric_limits<rowsize>::max(), ArgumentError,
                   "{}: {} matrices have too many elements for one row", label, shapes.size());
    }
    return static_cast<rowsize>(size);
}

// Headers hold bits of integers in elements of type real, hence memcpy. A row holds: the number of matrices, a
// MatrixBatchEntry (shape, start) for each, then the elements.
// O(elements), all zero at first. A row without matrices has no header.
void startMatrixBatchRow(std::span<real> row, std::span<const MatrixShape> shapes) {
    std::fill(row.begin(), row.end(), 0.0);
    if (shapes.empty())
        return;
    const auto count = static_cast<index>(shapes.size());
    std::memcpy(row.data(), &count, sizeof count);
    index start = headerSize(shapes);
    // Entries of two reals each follow the count; elements follow the last entry.
    real *to = row.data() + 1;
    for (const MatrixShape &shape : shapes) {
        const MatrixBatchEntry entry{shape, start};
        std::memcpy(to, &entry, sizeof entry);
        start += shape.size();
        to += 2;
    }
}

} // namespace DNDS
