#include "AnyArray.hpp"
#include "Arguments.hpp"
#include "Integers.hpp"
#include "NumpyViews.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <optional>
#include <span>
#include <utility>

namespace DNDS::Python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

void requireFreeRows(const AnyArray &array, const char *what) {
    DNDS_CHECK(!array.fixedRows, StateError, "'{}' cannot {}: its rows belong to a mapping; make another field instead",
               array.base->label(), what);
}

AnyArray makeArray(index rows, nb::handle width, std::string_view layout, nb::handle sizes, nb::handle dtype,
                   std::string name) {
    const RowKind kind = rowKindOf(layout);
    // Local arrays take part in no exchange and need no communicator.
    const CommPtr comm = commOf(nb::none());
    AnyArray made;
    made.comm = comm;
    made.base = withType(elementKindOf(dtype), kind, [&](auto element, auto rowKind) -> std::shared_ptr<ArrayBase> {
        return std::make_shared<ArrayOf<decltype(element), rowKind.value>>(name, comm->view);
    });
    resizeArray(*made.base, rows, width, sizes);
    return made;
}

/// Row `i` counted as Python does, from the end where it is negative.
index rowNumber(const ArrayBase &array, index i) {
    DNDS_CHECK(i >= -array.size() && i < array.size(), IndexError, "'{}': row {} is outside [0, {})", array.label(), i,
               array.size());
    return i < 0 ? i + array.size() : i;
}

nb::object rowOf(const AnyArray &self, index i) {
    const index row = rowNumber(*self.base, i);
    const nb::object elements = elementsOf(*self.base, self.writable());
    const bool csr = self.base->shape().layout == ArrayLayout::CSR;
    const index begin = csr ? self.base->rowStart(row) : 0;
    const nb::object part =
        nb::steal(PySlice_New(nb::int_(begin).ptr(), nb::int_(begin + self.base->rowSize(row)).ptr(), nullptr));
    return csr ? nb::object(elements[part]) : nb::object(elements[nb::int_(row)][part]);
}

std::string describe(const AnyArray &self) {
    const ArrayBase &array = *self.base;
    return fmt::format("<dnds.Array '{}': {} rows, {} {}>", array.name(), array.size(),
                       elementKindName(array.shape().kind), rowKindName(array.shape().layout));
}

/// The elements, row by row and as a whole.
void bindElements(nb::class_<AnyArray> &type) {
    type.def(
            "__len__", [](const AnyArray &self) { return self.base->size(); }, "The number of rows.")
        .def("__getitem__", &rowOf, "row"_a, nb::sig("def __getitem__(self, row: int, /) -> NDArray"),
             "Row `row` without copying, of its own size: [size].")
        .def(
            "__setitem__",
            [](nb::handle self, nb::handle row, nb::handle values) {
                nb::object view = self[row];
                view[nb::ellipsis()] = values;
            },
            "row"_a, "values"_a, nb::sig("def __setitem__(self, row: int, values: ArrayLike, /) -> None"),
            "Copies `values` into row `row`.")
        .def("__repr__", &describe)
        .def(
            "numpy",
            [](const AnyArray &self, bool writable) { return elementsOf(*self.base, self.writable() && writable); },
            nb::kw_only(), "writable"_a = true, nb::sig("def numpy(self, *, writable: bool = True) -> NDArray"),
            R"(The elements without copying: [rows, width] for fixed and padded rows (padding included), [elements] for csr.

The view keeps its memory alive: after `resize`, an old view shows the old memory. A writable view makes the
device side stale. Raises StaleError if only the device is current, StateError if csr rows are not compressed.

For arrays of a field: while a pull is in flight, owned rows are read-only and ghosts raise StateError; while a push is,
both raise it.)")
        .def(
            "__array__",
            [](const AnyArray &self, nb::handle dtype, nb::handle copy) {
                const nb::object elements = elementsOf(*self.base, self.writable());
                nb::object wanted =
                    dtype.is_none() ? elements : nb::object(elements.attr("astype")(dtype, "copy"_a = false));
                const bool copies = !copy.is_none() && nb::cast<bool>(nb::bool_(copy));
                if (wanted.is(elements))
                    return copies ? nb::object(wanted.attr("copy")()) : wanted;
                if (!copies && !copy.is_none())
                    throw nb::value_error("another dtype needs a copy");
                return wanted;
            },
            "dtype"_a.none() = nb::none(), "copy"_a.none() = nb::none(),
            nb::sig("def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> "
                    "NDArray"),
            "So that NumPy's functions take arrays: as `numpy()`.");
}

/// Sizes of rows, and what changes them.
void bindRowSizes(nb::class_<AnyArray> &type) {
    type.def_prop_ro(
            "sizes",
            [](const AnyArray &self) {
                (void)self.writable();
                return rowSizesOf(*self.base);
            },
            nb::sig("def sizes(self) -> NDArray[Int32]"), "The size of each row: [rows], read-only.")
        .def_prop_ro(
            "offsets", [](const AnyArray &self) { return offsetsOf(*self.base); },
            nb::sig("def offsets(self) -> NDArray[Int64]"),
            "Where csr rows start in `numpy()`: [rows + 1], read-only, without copying.")
        .def(
            "resize",
            [](AnyArray &self, index rows, nb::handle width, nb::handle sizes) {
                requireFreeRows(self, "be resized");
                resizeArray(*self.base, rows, width, sizes);
            },
            "rows"_a, "width"_a.none() = nb::none(), nb::kw_only(), "sizes"_a.none() = nb::none(),
            nb::sig("def resize(self, rows: int, width: int | None = None, *, "
                    "sizes: ArrayLike | None = None) -> None"),
            R"(Changes the number of rows; arguments as for the class. Without `sizes` remaining rows keep their contents,
and csr rows must be compressed before they are viewed.)")
        .def(
            "resize_row",
            [](AnyArray &self, index row, rowsize size) {
                requireFreeRows(self, "change a row");
                self.base->resizeRow(rowNumber(*self.base, row), size);
            },
            "row"_a, "size"_a, "Gives a padded row, or one of a decompressed csr array, another size.")
        .def(
            "compress",
            [](AnyArray &self) {
                self.requireLanded("be compressed");
                self.base->compress();
            },
            "Brings csr rows into one block.")
        .def(
            "decompress",
            [](AnyArray &self) {
                requireFreeRows(self, "be decompressed");
                self.base->decompress();
            },
            "Gives csr rows memory of their own, so that `resize_row` can change them.")
        .def_prop_ro(
            "is_compressed", [](const AnyArray &self) { return self.base->isCompressed(); },
            "Whether rows lie in one block.")
        .def(
            "content_hash",
            [](const AnyArray &self) {
                (void)self.writable();
                return self.base->hash();
            },
            "A hash of row sizes and the bits of all elements.");
}

} // namespace

RowKind rowKindOf(std::string_view word) {
    constexpr Words<RowKind, 3> kinds{{{"fixed", RowKind::Fixed}, {"padded", RowKind::Padded}, {"csr", RowKind::Csr}}};
    return chosen(word, "layout", kinds);
}

std::string_view rowKindName(ArrayLayout layout) {
    return isFixedLayout(layout) ? "fixed" : isPaddedLayout(layout) ? "padded" : "csr";
}

void resizeArray(ArrayBase &array, index rows, nb::handle width, nb::handle sizes) {
    const ArrayLayout layout = array.shape().layout;
    if (!sizes.is_none()) {
        const Integers list(sizes, "row sizes");
        const std::span<const index> given = list.span();
        DNDS_CHECK(static_cast<index>(given.size()) == rows, ArgumentError, "'{}' has {} rows, but {} sizes",
                   array.label(), rows, given.size());
        const auto sizeOf = [&](index row) { return given[static_cast<std::size_t>(row)]; };
        if (hasRunTimeWidth(layout) && !width.is_none())
            array.resize(rows, nb::cast<rowsize>(width), sizeOf);
        else
            array.resize(rows, sizeOf);
    } else if (!width.is_none()) {
        array.resize(rows, nb::cast<rowsize>(width));
    } else {
        array.resize(rows);
    }
}

void bindArray(nb::module_ &module) {
    nb::class_<AnyArray> type(module, "Array", R"(Rows of one element type in memory of the library, shared with NumPy.

Three layouts: "fixed" rows of one width; "padded" rows of different sizes up to a width; "csr" rows of different
sizes, one after the other. New memory is zero. All is Local.)");
    type.def(
            "__init__",
            [](AnyArray *self, index rows, nb::handle width, std::string_view layout, nb::handle sizes,
               nb::handle dtype, std::string name) {
                new (self) AnyArray(makeArray(rows, width, layout, sizes, dtype, std::move(name)));
            },
            "rows"_a = 0, "width"_a.none() = nb::none(), nb::kw_only(), "layout"_a = "fixed",
            "sizes"_a.none() = nb::none(), "dtype"_a = "float64", "name"_a = "",
            nb::sig("def __init__(self, rows: int = 0, width: int | None = None, *, layout: str = 'fixed', "
                    "sizes: ArrayLike | None = None, dtype: DTypeLike = 'float64', "
                    "name: str = '') -> None"),
            R"(`rows` rows. `width` is that of fixed rows, the largest of padded ones, or that of all rows of csr;
`sizes` [rows] are the sizes of padded and csr rows.)")
        .def_prop_ro(
            "name", [](const AnyArray &self) { return self.base->name(); }, "The name in messages.")
        .def_prop_ro(
            "layout", [](const AnyArray &self) { return rowKindName(self.base->shape().layout); },
            "'fixed', 'padded' or 'csr'.")
        .def_prop_ro(
            "dtype",
            [](const AnyArray &self) {
                return nb::module_::import_("numpy").attr("dtype")(
                    std::string(elementKindName(self.base->shape().kind)));
            },
            nb::sig("def dtype(self) -> DType"), "The NumPy type of elements.")
        .def_prop_ro(
            "width",
            [](const AnyArray &self) {
                return self.base->width() >= 0 ? std::optional<rowsize>(self.base->width()) : std::nullopt;
            },
            "The width that all rows have or are padded to; None for csr.");
    bindElements(type);
    bindRowSizes(type);
}

} // namespace DNDS::Python
