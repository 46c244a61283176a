#include "NumpyViews.hpp"

#include "DNDS/Base/Error.hpp"

#include <nanobind/stl/string.h>

#include <array>
#include <string>
#include <utility>

namespace DNDS::Python {

namespace nb = nanobind;

namespace {

struct KindName {
    ElementKind kind;
    const char *name;
    nb::dlpack::dtype_code code;
    std::uint8_t bits;
};
constexpr std::array kinds{
    KindName{ElementKind::Float64, "float64", nb::dlpack::dtype_code::Float, 64},
    KindName{ElementKind::Float32, "float32", nb::dlpack::dtype_code::Float, 32},
    KindName{ElementKind::Int64, "int64", nb::dlpack::dtype_code::Int, 64},
    KindName{ElementKind::Int32, "int32", nb::dlpack::dtype_code::Int, 32},
    KindName{ElementKind::Int16, "int16", nb::dlpack::dtype_code::Int, 16},
    KindName{ElementKind::Int8, "int8", nb::dlpack::dtype_code::Int, 8},
    KindName{ElementKind::UInt64, "uint64", nb::dlpack::dtype_code::UInt, 64},
    KindName{ElementKind::UInt32, "uint32", nb::dlpack::dtype_code::UInt, 32},
    KindName{ElementKind::UInt16, "uint16", nb::dlpack::dtype_code::UInt, 16},
    KindName{ElementKind::UInt8, "uint8", nb::dlpack::dtype_code::UInt, 8},
};

/// Address of empty views: NumPy wants one.
alignas(64) std::array<std::byte, 64> nothing{};

} // namespace

nb::dlpack::dtype dtypeOf(ElementKind kind) {
    for (const KindName &known : kinds)
        if (known.kind == kind)
            return {static_cast<std::uint8_t>(known.code), known.bits, 1};
    throw LayoutError("elements that are structs have no NumPy type");
}

namespace {

/// Throws the error for unknown kinds.
[[noreturn]] void throwNoKind(const std::string &name) {
    std::string list;
    for (const KindName &known : kinds)
        list += std::string(list.empty() ? "" : ", ") + known.name;
    throw ArgumentError(fmt::format("there are no arrays of {}: dtype is one of {}", name, list));
}

} // namespace

ElementKind elementKindOf(nb::handle dtype) {
    const nb::object described = nb::module_::import_("numpy").attr("dtype")(dtype);
    const auto name = nb::cast<std::string>(described.attr("name"));
    for (const KindName &known : kinds)
        if (name == known.name && nb::cast<bool>(described.attr("isnative")))
            return known.kind;
    throwNoKind(name);
}

ElementKind elementKindOf(nb::dlpack::dtype dtype) {
    for (const KindName &known : kinds)
        if (dtype == nb::dlpack::dtype{static_cast<std::uint8_t>(known.code), known.bits, 1})
            return known.kind;
    throwNoKind(fmt::format("DLPack's type {} of {} bits", dtype.code, dtype.bits));
}

nb::object numpyOf(const Block &block, std::shared_ptr<const void> hold, bool writable) {
    // The capsule's share keeps the memory: NumPy keeps the capsule, and views of views keep NumPy's array.
    const nb::capsule owner(new std::shared_ptr<const void>(std::move(hold)),
                            [](void *held) noexcept { delete static_cast<std::shared_ptr<const void> *>(held); });
    void *data = block.data != nullptr ? block.data : nothing.data();
    const nb::dlpack::dtype type = dtypeOf(block.kind);
    const auto make = [&](auto view) { return nb::cast(view, nb::rv_policy::reference); };
    if (writable)
        return make(
            nb::ndarray<nb::numpy>(data, block.shape.size(), block.shape.data(), owner, block.strides.data(), type));
    return make(nb::ndarray<nb::numpy, nb::ro>(data, block.shape.size(), block.shape.data(), owner,
                                               block.strides.data(), type));
}

nb::object elementsOf(ArrayBase &array, bool writable) {
    std::shared_ptr<const void> hold;
    const Block block = blockOf(array, writable, hold);
    return numpyOf(block, std::move(hold), writable);
}

Block blockOf(ArrayBase &array, bool writable, std::shared_ptr<const void> &hold, MemorySpace space) {
    const RowLayout layout = writable ? array.rowLayout(space, Access::Write) : std::as_const(array).rowLayout(space);
    const RowPart &part = layout.parts[0];
    Block block;
    block.data = part.base;
    block.kind = part.kind;
    const ArrayShape &shape = array.shape();
    const std::size_t scalar = dtypeOf(part.kind).bits / 8U;
    DNDS_CHECK(shape.elementBytes == scalar, LayoutError, "'{}' has elements of {} bytes, which NumPy has no type for",
               array.label(), shape.elementBytes);
    if (shape.layout == ArrayLayout::CSR) {
        block.shape = {static_cast<std::size_t>(array.dataSize())};
        block.strides = {1};
    } else {
        block.shape = {static_cast<std::size_t>(layout.rows),
                       static_cast<std::size_t>(array.width() > 0 ? array.width() : 0)};
        block.strides = {static_cast<std::int64_t>(part.stride / scalar), 1};
    }
    hold = part.hold;
    return block;
}

nb::object rowSizesOf(ArrayBase &array) {
    if (isPaddedLayout(array.shape().layout)) {
        const RowLayout layout = std::as_const(array).rowLayout(MemorySpace::Host);
        Block block;
        block.data = layout.parts[1].base;
        block.kind = ElementKind::Int32;
        block.shape = {static_cast<std::size_t>(layout.rows)};
        block.strides = {1};
        return numpyOf(block, layout.parts[1].hold, false);
    }
    auto sizes = std::make_shared<std::vector<rowsize>>(static_cast<std::size_t>(array.size()));
    for (std::size_t row = 0; row < sizes->size(); ++row)
        (*sizes)[row] = array.rowSize(static_cast<index>(row));
    return numpyOf(std::span<const rowsize>(*sizes), sizes);
}

nb::object offsetsOf(ArrayBase &array) {
    DNDS_CHECK(array.shape().layout == ArrayLayout::CSR, LayoutError,
               "'{}' has no offsets: its rows have one width, or are padded to one", array.label());
    const RowLayout layout = std::as_const(array).rowLayout(MemorySpace::Host);
    if (layout.rows == 0) { // there is no memory then, but there is a first offset
        static const auto zero = std::make_shared<const std::array<index, 1>>();
        return numpyOf(std::span<const index>(*zero), zero);
    }
    const std::span<const index> offsets(layout.parts[0].offsets, static_cast<std::size_t>(layout.rows) + 1);
    return numpyOf(offsets, array.holdOffsets());
}

} // namespace DNDS::Python
