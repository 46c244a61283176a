#include "DNDS/Array/MatrixShapes.hpp"

#include "DNDS/Base/ContentHash.hpp"

#include <array>
#include <limits>

namespace DNDS {

namespace {

void checkElements(MatrixShape shape, std::string_view label) {
    DNDS_CHECK(shape.rows >= 0 && shape.cols >= 0, ArgumentError, "{}: a matrix cannot be {} x {}", label, shape.rows,
               shape.cols);
    DNDS_CHECK(index{shape.rows} * shape.cols <= std::numeric_limits<rowsize>::max(), ArgumentError,
               "{}: a matrix of {} x {} has too many elements for one row", label, shape.rows, shape.cols);
}

/// One dimension of a matrix of row `i` against what all rows have in common.
void checkDimension(rowsize declared, rowsize common, rowsize given, const char *what, index i,
                    std::string_view label) {
    if (common < 0) // no limit, or not chosen
        return;
    DNDS_CHECK(declared == NonUniformSize ? given <= common : given == common, ArgumentError,
               "{}: the matrix of row {} cannot have {} {}, {} {}", label, i, given, what,
               declared == NonUniformSize ? "there is room for" : "all rows have", common);
}

rowsize mergedDimension(rowsize limit, rowsize given, const char *what, std::string_view label) {
    DNDS_CHECK(limit < 0 || limit == given, ArgumentError, "{}: matrices have {} {} by their type, not {}", label,
               limit, what, given);
    return limit == DynamicSize ? given : limit;
}

} // namespace

MatrixShape MatrixShapes::merged(MatrixShape shape, std::string_view label) const {
    checkElements(shape, label);
    return {mergedDimension(limit_.rows, shape.rows, "rows", label),
            mergedDimension(limit_.cols, shape.cols, "columns", label)};
}

MatrixShape MatrixShapes::mergedRows(MatrixShape common, std::span<const MatrixShape> shapes,
                                     std::string_view label) const {
    if (!shapes.empty()) {
        if (common.rows == DynamicSize && declared_.rows == DynamicSize)
            common.rows = shapes.front().rows;
        if (common.cols == DynamicSize && declared_.cols == DynamicSize)
            common.cols = shapes.front().cols;
    }
    for (std::size_t i = 0; i < shapes.size(); ++i)
        checkAgainst(common, static_cast<index>(i), shapes[i], label);
    return common;
}

void MatrixShapes::checkAgainst(MatrixShape common, index i, MatrixShape shape, std::string_view label) const {
    checkElements(shape, label);
    checkDimension(declared_.rows, common.rows, shape.rows, "rows", i, label);
    checkDimension(declared_.cols, common.cols, shape.cols, "columns", i, label);
    // the differing dimension is found from the row's size, which tells nothing where the other one is 0
    const bool one = (declared_.rows == NonUniformSize) != (declared_.cols == NonUniformSize);
    DNDS_CHECK(!one || (declared_.rows == NonUniformSize ? shape.cols : shape.rows) > 0, ArgumentError,
               "{}: the dimension that all matrices share must not be 0", label);
}

void MatrixShapes::adopt(const MatrixShapes &other, index rows, std::string_view label) {
    if (common_ == other.common_ || !other.chosen())
        return;
    DNDS_CHECK(rows == 0, StateError, "{}: has matrices of {} x {}, so it cannot take the shape {} x {}", label,
               common_.rows, common_.cols, other.common_.rows, other.common_.cols);
    common_ = other.common_;
}

bool MatrixShapes::agree(const CommunicatorView &comm, index rows, std::string_view label) {
    std::array<rowsize, 2> largest{common_.rows, common_.cols};
    comm.allReduce(largest.data(), 2, MPI_MAX);
    const MatrixShape agreed{largest[0], largest[1]};
    comm.guarded([&] {
        DNDS_CHECK(common_ == agreed || (!chosen() && rows == 0), LayoutError,
                   "the matrices of '{}' are {} x {} here and {} x {} on another rank: they must be equal", label,
                   common_.rows, common_.cols, agreed.rows, agreed.cols);
    });
    const bool changed = common_ != agreed;
    common_ = agreed;
    return changed;
}

HostDeviceBuffer MatrixShapes::resizedBuffer(std::size_t rows) const {
    HostDeviceBuffer buffer = newBuffer(0);
    buffer = perRow_;
    buffer.resize(rows * sizeof(MatrixShape));
    return buffer;
}

void MatrixShapes::describe(RowLayout &layout, std::byte *base) const {
    if (common_ != limit_) {
        ContentHash withShape;
        withShape.add(layout.signature);
        withShape.add(static_cast<std::uint64_t>(common_.rows));
        withShape.add(static_cast<std::uint64_t>(common_.cols));
        layout.signature = withShape.value();
    }
    if (!perRowNeeded())
        return;
    RowPart &shapes = layout.parts.at(static_cast<std::size_t>(layout.partCount++));
    shapes.base = base;
    shapes.stride = sizeof(MatrixShape);
    shapes.elementBytes = sizeof(rowsize);
    shapes.generation = perRow_.generation();
    shapes.kind = ElementKind::Int32;
    shapes.hold = perRow_.hold(layout.space);
}

std::uint64_t MatrixShapes::hash(std::uint64_t contents, std::string_view label) const {
    ContentHash hash;
    hash.add(contents);
    hash.add(static_cast<std::uint64_t>(common_.rows));
    hash.add(static_cast<std::uint64_t>(common_.cols));
    hash.addBytes(perRow_.read(MemorySpace::Host, label), perRow_.bytes());
    return hash.value();
}

} // namespace DNDS
