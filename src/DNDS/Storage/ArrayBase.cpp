#include "DNDS/Storage/ArrayBase.hpp"

#include "DNDS/Base/ContentHash.hpp"
#include "DNDS/Base/Error.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <utility>

namespace DNDS {

namespace {

/// The start of the first row if there are no offsets, because there are no rows.
constexpr index noOffsets[1] = {0};

// The width by the type: DynamicSize or NonUniformSize if it has none.
rowsize initialWidth(const ArrayShape &shape) {
    return shape.layout == ArrayLayout::StaticFixed ? shape.rowSize : shape.rowMax;
}

index initialStride(const ArrayShape &shape) {
    const rowsize width = initialWidth(shape);
    return width > 0 ? rowStrideOf(width, shape.elementBytes, shape.align) : 0;
}

} // namespace

// Functions that reallocate make all new memory first and swap it in at the end: a failure leaves the rows as they
// were. The version is that of `data_`: functions that change other buffers, or the number of rows only, mark it.
// Invariants: `data_` holds rows_ x stride_ elements in fixed and padded layouts. CSR is in one of two states:
// compressed, with rows_ + 1 offsets (none without rows), or loose, with one vector a row in `looseRows_`.
ArrayBase::ArrayBase(const ArrayShape &shape) noexcept
    : shape_(&shape), stride_(initialStride(shape)), width_(initialWidth(shape)), common_(shape.limit) {}

ArrayBase &ArrayBase::operator=(const ArrayBase &other) {
    copyState(other);
    name_ = other.name_;
    return *this;
}

// Swaps with an empty array of the same type, which is what `other` becomes.
ArrayBase::ArrayBase(ArrayBase &&other) noexcept : ArrayBase(*other.shape_) {
    swapState(other);
    swapNames(other);
}

ArrayBase &ArrayBase::operator=(ArrayBase &&other) noexcept {
    if (this != &other) {
        ArrayBase taken(std::move(other));
        swapState(taken);
        swapNames(taken);
    }
    return *this;
}

// The shape moves along: arrays of matrices may differ in it, although their types agree.
void ArrayBase::swapState(ArrayBase &other) noexcept {
    std::swap(shape_, other.shape_);
    for (std::size_t k = 0; k < buffersOf(*this).size(); ++k)
        buffersOf(*this)[k]->swap(*buffersOf(other)[k]);
    looseRows_.swap(other.looseRows_);
    std::swap(rows_, other.rows_);
    std::swap(stride_, other.stride_);
    std::swap(width_, other.width_);
    std::swap(common_, other.common_);
    std::swap(compressed_, other.compressed_);
}

// Copies first, swaps after: a failure to allocate leaves this array as it was, except where rows keep their memory.
// O(bytes). The name stays: it belongs to the array, not to its contents.
void ArrayBase::copyState(const ArrayBase &other) {
    if (this == &other)
        return;
    // Memory is reused only if every row keeps its position: code that remembers the generation remembers row
    // positions, too.
    const bool sameRows = rows_ == other.rows_ && stride_ == other.stride_ && shape_->layout != ArrayLayout::CSR;
    std::vector<std::vector<std::byte>> looseRows = other.looseRows_;
    std::vector<HostDeviceBuffer> copies;
    for (std::size_t k = 0; k < buffersOf(*this).size(); ++k) {
        HostDeviceBuffer &mine = *buffersOf(*this)[k];
        if (sameRows)
            mine = *buffersOf(other)[k];
        else
            copies.emplace_back(std::size_t{0}, mine.resource()) = *buffersOf(other)[k];
    }
    for (std::size_t k = 0; k < copies.size(); ++k)
        buffersOf(*this)[k]->swap(copies[k]);
    looseRows_.swap(looseRows);
    rows_ = other.rows_;
    stride_ = other.stride_;
    width_ = other.width_;
    common_ = other.common_;
    compressed_ = other.compressed_;
}

void ArrayBase::throwRow(index i) const {
    throw IndexError(fmt::format("{}: row {} is outside [0, {})", label(), i, rows_));
}

void ArrayBase::throwElement(index i, rowsize j) const {
    throw IndexError(fmt::format("{}: element {} is outside [0, {}) of row {}", label(), j, rowSizeUnchecked(i), i));
}

void ArrayBase::throwDecompressed() const {
    throw StateError(fmt::format("{}: the rows of this CSR array are decompressed; call compress() first", label()));
}

// Checks name the array and the number, and come before anything has changed.
std::size_t ArrayBase::checkedRowCount(index rows) const {
    DNDS_CHECK(rows >= 0, ArgumentError, "{}: cannot have {} rows", label(), rows);
    // sizes and offsets have an entry per row, whatever the elements need
    DNDS_CHECK(rows < std::numeric_limits<index>::max() / static_cast<index>(sizeof(index)), ArgumentError,
               "{}: {} rows are more than memory can hold", label(), rows);
    return static_cast<std::size_t>(rows);
}

rowsize ArrayBase::checkedSize(index i, index size) const {
    DNDS_CHECK(size >= 0 && size <= std::numeric_limits<rowsize>::max(), ArgumentError,
               "{}: row {} cannot have {} elements", label(), i, size);
    return static_cast<rowsize>(size);
}

// Two cases of a negative width: a wrong number, and one that was never chosen.
rowsize ArrayBase::checkedWidth(rowsize width) const {
    DNDS_CHECK(width >= 0 || (width == DynamicSize && width_ == DynamicSize), ArgumentError,
               "{}: rows cannot be {} elements wide", label(), width);
    DNDS_CHECK(width >= 0, StateError, "{}: the width of the rows was not chosen yet; call resize(rows, width)",
               label());
    DNDS_CHECK(hasRunTimeWidth(shape_->layout) || width == width_, ArgumentError,
               "{}: rows are {} elements wide by their type, not {}", label(), width_, width);
    return width;
}

// Overflow would allocate less than is used.
std::size_t ArrayBase::checkedBytes(index rows, index elementsPerRow) const {
    std::ptrdiff_t elements = 0;
    std::ptrdiff_t bytes = 0;
    const bool overflow = __builtin_mul_overflow(rows, elementsPerRow, &elements) ||
                          __builtin_mul_overflow(elements, static_cast<std::ptrdiff_t>(shape_->elementBytes), &bytes);
    DNDS_CHECK(!overflow, ArgumentError, "{}: {} rows of {} elements of {} bytes are more than memory can hold",
               label(), rows, elementsPerRow, shape_->elementBytes);
    return static_cast<std::size_t>(bytes);
}

rowsize ArrayBase::rowSize() const {
    DNDS_CHECK(isFixedLayout(shape_->layout), LayoutError, "{}: the rows of a {} array differ in size; ask for a row's",
               label(), arrayLayoutName(shape_->layout));
    return std::max(width_, rowsize{0});
}

// CSR has no maximum of its own, so that all rows are asked.
rowsize ArrayBase::rowSizeMax() const {
    if (shape_->layout != ArrayLayout::CSR)
        return std::max(width_, rowsize{0});
    rowsize longest = 0;
    for (index i = 0; i < rows_; ++i)
        longest = std::max(longest, rowSizeUnchecked(i));
    return longest;
}

// With padding, as memory has it.
index ArrayBase::dataSize() const {
    if (compressed_)
        return static_cast<index>(data_.bytes() / shape_->elementBytes);
    std::size_t bytes = 0;
    for (const auto &row : looseRows_)
        bytes += row.size();
    return static_cast<index>(bytes / shape_->elementBytes);
}

// CSR also has the start after the last row, which is the number of elements.
index ArrayBase::rowStart(index i) const {
    checkCompressed();
    if (shape_->layout != ArrayLayout::CSR) {
        checkRow(i);
        return i * stride_;
    }
    if (i != rows_)
        checkRow(i);
    return rows_ > 0 ? hostOffsets()[i] : 0;
}

// Everything that may fail comes first; swaps and assignments at the end do not.
// O(old and new bytes): contents are kept. CSR decompresses first.
void ArrayBase::resize(index rows) {
    const std::size_t count = checkedRowCount(rows);
    HostDeviceBuffer shapes = newShapes(0);
    if (shape_->shapePerRow() && rows != rows_) {
        shapes = shapes_;
        shapes.resize(count * sizeof(MatrixShape));
    }
    if (shape_->layout == ArrayLayout::CSR) {
        decompress();
        if (rows != rows_)
            markWritten();
        looseRows_.resize(count);
    } else if (rows != rows_) {
        if (rows > 0)
            checkedWidth(width_);
        const std::size_t bytes = checkedBytes(rows, stride_);
        // a copy of the sizes is made first, so that a failure leaves the array as it was
        HostDeviceBuffer sizes(0, sizes_.resource());
        if (isPaddedLayout(shape_->layout)) {
            sizes = sizes_;
            sizes.resize(count * sizeof(rowsize));
        }
        data_.resize(bytes);
        markWritten(); // rows without elements count, too
        sizes_.swap(sizes);
    }
    if (rows != rows_)
        shapes_.swap(shapes);
    rows_ = rows;
}

// In CSR the width is that of every row now, not a property of the array: rows may change later.
void ArrayBase::resize(index rows, rowsize width) {
    const std::size_t count = checkedRowCount(rows);
    if (shape_->layout == ArrayLayout::CSR) {
        DNDS_CHECK(width >= 0, ArgumentError, "{}: rows cannot have {} elements", label(), width);
        checkedBytes(rows, width);
        std::vector<index> offsets(count + 1);
        for (index i = 0; i <= rows; ++i)
            offsets[static_cast<std::size_t>(i)] = i * width;
        renewCsr(std::move(offsets), false);
        return;
    }
    DNDS_CHECK(width >= 0, ArgumentError, "{}: rows cannot be {} elements wide", label(), width);
    checkedWidth(width);
    // Only the number of rows changes: elements are kept.
    if (width == width_) {
        resize(rows);
        return;
    }
    renew(rows, width, {});
}

// Padded and CSR rows have sizes, which must not be garbage.
void ArrayBase::resizeUninitialized(index rows, rowsize width) {
    DNDS_CHECK(isFixedLayout(shape_->layout), LayoutError, "{}: rows of a {} array have sizes, which need values",
               label(), arrayLayoutName(shape_->layout));
    checkedRowCount(rows);
    DNDS_CHECK(width >= 0, ArgumentError, "{}: rows cannot be {} elements wide", label(), width);
    renew(rows, checkedWidth(width), {}, NewBytes::Unset);
}

// Both kinds start over. CSR gets its offsets here; padded layouts check each size against the width.
void ArrayBase::resizeToSizes(std::span<const rowsize> rowSizes, rowsize width) {
    const index rows = static_cast<index>(rowSizes.size());
    DNDS_CHECK(!isFixedLayout(shape_->layout), LayoutError, "{}: all rows of a {} array have one width; give that",
               label(), arrayLayoutName(shape_->layout));
    if (shape_->layout == ArrayLayout::CSR) {
        std::vector<index> offsets(rowSizes.size() + 1);
        for (std::size_t i = 0; i < rowSizes.size(); ++i)
            DNDS_CHECK(!__builtin_add_overflow(offsets[i], rowSizes[i], &offsets[i + 1]), ArgumentError,
                       "{}: too many elements by row {}", label(), i);
        checkedBytes(1, offsets.back());
        renewCsr(std::move(offsets), false);
        return;
    }
    if (rows == 0 && width == width_) { // no rows need no width
        resize(0);
        return;
    }
    checkedWidth(width);
    for (std::size_t i = 0; i < rowSizes.size(); ++i)
        DNDS_CHECK(rowSizes[i] <= width, ArgumentError, "{}: row {} cannot have {} elements, rows have room for {}",
                   label(), i, rowSizes[i], width);
    renew(rows, width, rowSizes);
}

// The open dimension follows only if the width is chosen at run time and the other dimension is known and the same in
// all rows. A width that the other does not divide is rejected by `renew`.
MatrixShape ArrayBase::shapeOfWidth(rowsize width) const noexcept {
    const auto follows = [this](rowsize open, rowsize declared, rowsize known) {
        return hasRunTimeWidth(shape_->layout) && open == DynamicSize && declared != NonUniformSize && known > 0;
    };
    MatrixShape shape = common_;
    if (follows(shape.rows, shape_->declared.cols, shape.cols))
        shape.rows = width / shape.cols;
    else if (follows(shape.cols, shape_->declared.rows, shape.rows))
        shape.cols = width / shape.rows;
    return shape;
}

// Makes all new memory before it replaces the old: a failure leaves the array as it was.
// O(new bytes), which are zeroed unless `contents` says otherwise; old contents are dropped.
void ArrayBase::renew(index rows, rowsize width, std::span<const rowsize> rowSizes, NewBytes contents) {
    const auto count = static_cast<std::size_t>(rows);
    const index newStride = rowStrideOf(width, shape_->elementBytes, shape_->align);
    // In the memory that the array was given.
    HostDeviceBuffer data(checkedBytes(rows, newStride), data_.resource(), contents);
    HostDeviceBuffer sizes(isPaddedLayout(shape_->layout) ? count * sizeof(rowsize) : 0, sizes_.resource());
    HostDeviceBuffer shapes = newShapes(count);
    const MatrixShape common = shapeOfWidth(width);
    DNDS_CHECK(common == common_ || common.size() == width, ArgumentError,
               "{}: rows of {} elements are no matrices of {} x {}", label(), width, common_.rows, common_.cols);
    if (!rowSizes.empty())
        std::memcpy(sizes.write(MemorySpace::Host, label()), rowSizes.data(), rowSizes.size_bytes());
    data_.swap(data);
    sizes_.swap(sizes);
    shapes_.swap(shapes);
    rows_ = rows;
    width_ = width;
    stride_ = newStride;
    common_ = common;
}

// With `keep`, `offsets` must be those of the decompressed rows, whose elements are copied in order.
// O(elements). All new buffers exist before the first swap.
void ArrayBase::renewCsr(std::vector<index> offsets, bool keep) {
    const index rows = static_cast<index>(offsets.size()) - 1;
    HostDeviceBuffer data(static_cast<std::size_t>(offsets.back()) * shape_->elementBytes, data_.resource());
    HostDeviceBuffer starts(rows > 0 ? offsets.size() * sizeof(index) : 0, offsets_.resource());
    if (rows > 0)
        std::memcpy(starts.write(MemorySpace::Host, label()), offsets.data(), starts.bytes());
    if (keep) {
        std::byte *next = data.write(MemorySpace::Host, label());
        for (const auto &row : looseRows_)
            next = std::copy(row.begin(), row.end(), next);
    } else {
        HostDeviceBuffer shapes = newShapes(static_cast<std::size_t>(rows));
        shapes_.swap(shapes);
    }
    data_.swap(data);
    offsets_.swap(starts);
    looseRows_ = {};
    rows_ = rows;
    compressed_ = true;
}

// Elements that a padded row loses become zero, as new ones must be when it grows again.
// O(1) for padded rows, O(row) for decompressed CSR. Fixed and compressed rows keep their size.
void ArrayBase::resizeRow(index i, rowsize width) {
    checkRow(i);
    checkedSize(i, width);
    const std::size_t elementBytes = shape_->elementBytes;
    const auto newBytes = static_cast<std::size_t>(width) * elementBytes;
    if (shape_->layout == ArrayLayout::CSR) {
        DNDS_CHECK(!compressed_, StateError, "{}: rows cannot change size while compressed; call decompress() first",
                   label());
        looseRow(i).resize(newBytes);
        return;
    }
    if (isFixedLayout(shape_->layout)) {
        DNDS_CHECK(width == width_, ArgumentError, "{}: row {} cannot have {} elements, all rows have {}", label(), i,
                   width, width_);
        return;
    }
    DNDS_CHECK(width <= width_, ArgumentError, "{}: row {} cannot have {} elements, rows have room for {}", label(), i,
               width, width_);
    // Padded rows: memory for the full width exists.
    const rowsize old = rowSizeUnchecked(i);
    if (width == old)
        return;
    static_cast<void>(readData(MemorySpace::Host)); // sizes and elements change on the same side
    if (width < old) {
        std::byte *row = writeData(MemorySpace::Host) + static_cast<std::size_t>(i * stride_) * elementBytes;
        std::memset(row + newBytes, 0, static_cast<std::size_t>(old - width) * elementBytes);
    }
    reinterpret_cast<rowsize *>(sizes_.write(MemorySpace::Host, label()))[i] = width;
    markWritten();
}

// Amortized O(1) for decompressed CSR, O(1) for padded rows with room.
void ArrayBase::appendElement(index i, const std::byte *element) {
    const rowsize old = rowSize(i);
    DNDS_CHECK(!isFixedLayout(shape_->layout), LayoutError, "{}: the rows of a {} array do not grow", label(),
               arrayLayoutName(shape_->layout));
    checkedSize(i, index{old} + 1);
    const std::size_t elementBytes = shape_->elementBytes;
    if (shape_->layout == ArrayLayout::CSR && !compressed_) {
        std::vector<std::byte> &row = looseRow(i);
        row.insert(row.end(), element, element + elementBytes);
        return;
    }
    resizeRow(i, old + 1); // throws for full padded rows and for compressed CSR
    std::memcpy(writeData(MemorySpace::Host) + static_cast<std::size_t>(i * stride_ + old) * elementBytes, element,
                elementBytes);
}

// Matrix shapes stay: they are stored for each row in both states.
// O(elements): one allocation for all rows instead of one a row.
void ArrayBase::compress() {
    if (compressed_)
        return;
    std::vector<index> offsets(looseRows_.size() + 1);
    for (std::size_t i = 0; i < looseRows_.size(); ++i)
        offsets[i + 1] = offsets[i] + static_cast<index>(looseRows_[i].size() / shape_->elementBytes);
    renewCsr(std::move(offsets), true);
}

// Needs valid elements on the host; the device side is dropped.
// O(elements), with an allocation a row.
void ArrayBase::decompress() {
    if (shape_->layout != ArrayLayout::CSR || !compressed_)
        return;
    std::vector<std::vector<std::byte>> rows(static_cast<std::size_t>(rows_));
    if (rows_ > 0) {
        const std::byte *data = readData(MemorySpace::Host);
        const index *offsets = hostOffsets();
        for (std::size_t i = 0; i < rows.size(); ++i)
            rows[i].assign(data + static_cast<std::size_t>(offsets[i]) * shape_->elementBytes,
                           data + static_cast<std::size_t>(offsets[i + 1]) * shape_->elementBytes);
    }
    data_.renew(0);
    offsets_.renew(0);
    // The old buffers are empty: from here on nothing fails.
    looseRows_ = std::move(rows);
    compressed_ = false;
}

// Numbers that this array has chosen may change while it has no rows.
void ArrayBase::adoptShape(const ArrayBase &other) {
    // Types first, then numbers chosen at run time.
    DNDS_CHECK(layoutHash() == other.layoutHash(), LayoutError, "{} ({}) cannot take the shape of {} ({})", label(),
               layoutSignature(), other.label(), other.layoutSignature());
    DNDS_CHECK(shape_->declared == other.shape_->declared && shape_->limit == other.shape_->limit, LayoutError,
               "'{}' cannot take the shape of '{}', which has other matrices", label(), other.label());
    if (width_ != other.width_ && other.width_ != DynamicSize) {
        DNDS_CHECK(rows_ == 0, StateError, "{}: has rows of width {}, so it cannot take the width {} of {}", label(),
                   width_, other.width_, other.label());
        width_ = other.width_;
        stride_ = other.stride_;
    }
    if (common_ != other.common_ && other.common_.chosen()) {
        DNDS_CHECK(rows_ == 0, StateError, "{}: has matrices of {} x {}, so it cannot take the shape {} x {} of {}",
                   label(), common_.rows, common_.cols, other.common_.rows, other.common_.cols, other.label());
        common_ = other.common_;
    }
}

// One reduction: the largest numbers and the negated smallest ones, which are equal if all who chose agree.
// Collective through `largest`, which replaces numbers by their maxima over all ranks. Ranks without a choice pass
// the least number, which never wins.
void ArrayBase::takeLargestShape(const std::function<void(std::span<rowsize>)> &largest) {
    if (!hasRunTimeWidth(shape_->layout) && shape_->limit.chosen())
        return;
    constexpr rowsize none = std::numeric_limits<rowsize>::min();
    const std::array<rowsize, 3> mine{width_, common_.rows, common_.cols};
    std::array<rowsize, 6> extremes; // the largest and, negated, the smallest number that a rank has chosen
    for (std::size_t k = 0; k < mine.size(); ++k) {
        extremes[2 * k] = mine[k] >= 0 ? mine[k] : none;
        extremes[2 * k + 1] = mine[k] >= 0 ? -mine[k] : none;
    }
    largest(extremes);
    constexpr std::array<const char *, 3> what{"elements wide", "matrix rows high", "matrix columns wide"};
    for (std::size_t k = 0; k < mine.size(); ++k)
        DNDS_CHECK(extremes[2 * k] == none || extremes[2 * k] == -extremes[2 * k + 1], LayoutError,
                   "rows of '{}' are {} {} on some rank and {} on another (here {}): they must be equal", label(),
                   -extremes[2 * k + 1], what[k], extremes[2 * k], mine[k]);
    if (width_ == DynamicSize && extremes[0] != none)
        resize(0, extremes[0]);
    if (common_.rows == DynamicSize && extremes[2] != none)
        common_.rows = extremes[2];
    if (common_.cols == DynamicSize && extremes[4] != none)
        common_.cols = extremes[4];
}

void ArrayBase::toDevice() {
    checkCompressed();
    // All buffers, so that elements and sizes are current together.
    for (HostDeviceBuffer *buffer : buffersOf(*this))
        buffer->toDevice();
}

void ArrayBase::toDevice(Device::StreamHandle stream) {
    checkCompressed();
    for (HostDeviceBuffer *buffer : buffersOf(*this))
        buffer->toDevice(stream);
}

void ArrayBase::toHost() {
    for (HostDeviceBuffer *buffer : buffersOf(*this))
        buffer->toHost();
}

void ArrayBase::toHost(Device::StreamHandle stream) {
    for (HostDeviceBuffer *buffer : buffersOf(*this))
        buffer->toHost(stream);
}

// Offsets stay where they are: only this rank reads them.
void ArrayBase::rehost(const HostMemoryResource &resource) {
    data_.rehost(resource);
    sizes_.rehost(resource);
    shapes_.rehost(resource);
}

// O(bytes of both), once: arrays that already lie so are left alone. Father and son then form one range for kernels.
void ArrayBase::joinRows(ArrayBase &front, ArrayBase &back, MemorySpace space) {
    for (const ArrayBase *array : {&front, &back})
        DNDS_CHECK(
            isFixedLayout(array->shape_->layout), LayoutError,
            "rows of '{}' have sizes of their own ({}): only arrays whose rows all have one width can lie behind "
            "each other",
            array->label(), array->layoutSignature());
    DNDS_CHECK(front.size() == 0 || back.size() == 0 || front.width_ == back.width_, LayoutError,
               "'{}' has rows of {} elements, '{}' of {}: they cannot lie behind each other", front.label(),
               front.width_, back.label(), back.width_);
    HostDeviceBuffer::join(front.data_, back.data_, space);
}

// Null for arrays without elements, whose rows then have no bytes.
const std::byte *ArrayBase::rowBytes(index i) const {
    if (!compressed_)
        return looseRow(i).data();
    const index start = shape_->layout == ArrayLayout::CSR ? hostOffsets()[i] : i * stride_;
    const std::byte *data = readData(MemorySpace::Host);
    return data ? data + static_cast<std::size_t>(start) * shape_->elementBytes : nullptr;
}

// Row by row, without padding, so that layouts with equal rows hash alike. Shapes count only for matrices.
// O(bytes). Equal on all ranks for equal rows, so that ranks can compare their contents.
std::uint64_t ArrayBase::hash() const {
    const MatrixShape declared = shape_->declared;
    const MatrixShape *const shapes = rowShapesIn(MemorySpace::Host);
    ContentHash hash;
    hash.add(static_cast<std::uint64_t>(rows_));
    for (index i = 0; i < rows_; ++i) {
        const rowsize elements = rowSizeUnchecked(i);
        hash.add(static_cast<std::uint64_t>(elements));
        hash.addBytes(rowBytes(i), static_cast<std::size_t>(elements) * shape_->elementBytes);
        // Not an array of matrices.
        if (declared == MatrixShape{})
            continue;
        MatrixShape shape = shapes != nullptr ? shapes[i] : common_; // equal elements in other matrices
        if (shapes == nullptr && declared.rows == NonUniformSize)
            shape.rows = elements / std::max(shape.cols, 1);
        else if (shapes == nullptr && declared.cols == NonUniformSize)
            shape.cols = elements / std::max(shape.rows, 1);
        hash.add(static_cast<std::uint64_t>(shape.rows));
        hash.add(static_cast<std::uint64_t>(shape.cols));
    }
    return hash.value();
}

void ArrayBase::rowLayout(MemorySpace space, Access access, RowLayout &into) {
    checkCompressed();
    describe(space, into); // checks all before any makes its other side stale
    if (access == Access::Write) {
        writeData(space);
        sizes_.write(space, label());
        shapes_.write(space, label());
    }
}

RowLayout ArrayBase::rowLayout(MemorySpace space, Access access) {
    RowLayout layout;
    rowLayout(space, access, layout);
    return layout;
}

RowLayout ArrayBase::rowLayout(MemorySpace space) const {
    checkCompressed();
    RowLayout layout;
    describe(space, layout);
    return layout;
}

// Elements first, then the sizes of padded rows, then the shapes of matrices: the order that RowLayout promises.
// O(parts), at every start and wait of an exchange. Run-time widths enter the signature: peers compare it in set-up.
void ArrayBase::describe(MemorySpace space, RowLayout &layout) const {
    // a transport that asked to read does not write; RowPart has one pointer type for both directions
    const auto side = [&](const HostDeviceBuffer &buffer, bool used = true) {
        return used ? const_cast<std::byte *>(buffer.read(space, label())) : nullptr;
    };
    const bool padded = isPaddedLayout(shape_->layout);
    std::byte *const data = side(data_);
    std::byte *const sizes = side(sizes_, padded);
    std::byte *const shapes = side(shapes_, shape_->shapePerRow());
    layout.rows = rows_;
    layout.space = space;
    layout.signature = layoutHash();
    const auto sign = [&](std::initializer_list<rowsize> chosen) { // what was chosen at run time
        ContentHash hash;
        hash.add(layout.signature);
        for (const rowsize number : chosen)
            hash.add(static_cast<std::uint64_t>(number));
        layout.signature = hash.value();
    };
    if (hasRunTimeWidth(shape_->layout) && width_ != DynamicSize)
        sign({width_});
    if (common_ != shape_->limit)
        sign({common_.rows, common_.cols});
    RowPart &elements = layout.parts[0];
    elements.base = data;
    elements.elementBytes = shape_->elementBytes;
    elements.generation = data_.generation();
    elements.kind = shape_->hasRowHeaders ? ElementKind::Opaque : shape_->kind;
    elements.hold = layout.keepsMemory ? data_.hold(space) : nullptr;
    if (shape_->layout == ArrayLayout::CSR)
        elements.offsets = rows_ > 0 ? hostOffsets() : noOffsets;
    else
        elements.stride = static_cast<std::size_t>(stride_) * shape_->elementBytes;
    layout.partCount = 1;
    const auto addPart = [&](const HostDeviceBuffer &buffer, std::byte *base, std::size_t stride) {
        RowPart &part = layout.parts[static_cast<std::size_t>(layout.partCount++)];
        part.base = base;
        part.stride = stride;
        part.elementBytes = sizeof(rowsize);
        part.generation = buffer.generation();
        part.kind = ElementKind::Int32;
        part.hold = layout.keepsMemory ? buffer.hold(space) : nullptr;
    };
    if (padded)
        addPart(sizes_, sizes, sizeof(rowsize));
    if (shape_->shapePerRow())
        addPart(shapes_, shapes, sizeof(MatrixShape));
}

} // namespace DNDS
