#include "DNDS/Array/MatrixBatchRow.hpp"

#include <algorithm>
#include <limits>

namespace DNDS {

namespace {

/// Reals in front of the first matrix.
index headerSize(std::span<const MatrixShape> shapes) { return 1 + 2 * static_cast<index>(shapes.size()); }

} // namespace

rowsize matrixBatchRowSize(std::span<const MatrixShape> shapes, std::string_view label) {
    if (shapes.empty())
        return 0;
    index size = headerSize(shapes);
    for (const MatrixShape &shape : shapes) {
        DNDS_CHECK(shape.rows >= 0 && shape.cols >= 0, ArgumentError, "{}: a matrix cannot be {} x {}", label,
                   shape.rows, shape.cols);
        size += index{shape.rows} * shape.cols;
        DNDS_CHECK(size <= std::numeric_limits<rowsize>::max(), ArgumentError,
                   "{}: {} matrices, one of them {} x {}, have too many elements for one row", label, shapes.size(),
                   shape.rows, shape.cols);
    }
    return static_cast<rowsize>(size);
}

void startMatrixBatchRow(std::span<real> row, std::span<const MatrixShape> shapes) {
    std::fill(row.begin(), row.end(), 0.0);
    if (shapes.empty())
        return;
    const auto count = static_cast<index>(shapes.size());
    std::memcpy(row.data(), &count, sizeof count);
    index start = headerSize(shapes);
    real *to = row.data() + 1;
    for (const MatrixShape &shape : shapes) {
        const MatrixBatchEntry entry{shape, start};
        std::memcpy(to, &entry, sizeof entry);
        start += shape.size();
        to += 2;
    }
}

} // namespace DNDS
