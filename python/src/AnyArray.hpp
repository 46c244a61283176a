/// @file AnyArray.hpp
/// @brief Arrays whose element type and layout are chosen at run time, for Python.
#pragma once

#include "Comm.hpp"
#include "FlightCounts.hpp"

#include "DNDS/Array/ParArray.hpp"

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

namespace DNDS::Python {

/// The row layouts that Python can create; the others of ArrayLayout come from C++ only.
enum class RowKind : unsigned char {
    Fixed,  ///< one width
    Padded, ///< different sizes, padded to one width
    Csr     ///< different sizes, one after the other
};
/// "fixed", "padded", "csr". Throws ArgumentError that lists the words.
RowKind rowKindOf(std::string_view word);
std::string_view rowKindName(ArrayLayout layout);

/// The array type of a kind of rows.
template <class T, RowKind rows>
using ArrayOf = ParArray<T, rows == RowKind::Fixed ? DynamicSize : NonUniformSize,
                         rows == RowKind::Csr ? NonUniformSize : DynamicSize>;

/// Calls `function(T{}, std::integral_constant<RowKind, rows>{})` with the type of `kind` and the value of `rows`.
template <class Function>
auto withType(ElementKind kind, RowKind rows, Function &&function) {
    const auto withRows = [&](auto element) {
        switch (rows) {
        case RowKind::Fixed:
            return function(element, std::integral_constant<RowKind, RowKind::Fixed>{});
        case RowKind::Padded:
            return function(element, std::integral_constant<RowKind, RowKind::Padded>{});
        case RowKind::Csr:
            break;
        }
        return function(element, std::integral_constant<RowKind, RowKind::Csr>{});
    };
    return visitNumber(kind, withRows, []() -> decltype(withRows(double{})) {
        throw LayoutError("arrays of structs cannot be made from Python");
    });
}

/// An array for Python: shared with its field.
struct AnyArray {
    std::shared_ptr<ArrayBase> base;
    CommPtr comm;                               ///< kept alive; null if the array needs none
    bool fixedRows = false;                     ///< a mapping determines the number of rows
    std::shared_ptr<const FlightCounts> flight; ///< counts of its field, or null
    bool ghosts = false;                        ///< shows the ghosts of the field, instead of its owned rows

    /// Whether the rows may be written now: not while a pull reads them. Throws StateError while an exchange may write
    /// them itself.
    bool writable() const {
        if (flight && ghosts)
            flight->requireLanded(base->label(), "show its ghosts");
        else if (flight)
            flight->requireSettled(base->label(), "show its owned rows");
        return !flight || !flight->anyIs(Direction::Pull);
    }
    /// Throws StateError while an exchange in flight forbids `what`.
    void requireLanded(std::string_view what) const {
        if (flight)
            flight->requireLanded(base->label(), what);
    }
};

/// Gives an array its rows: `sizes` is the number of elements of each row, or null for rows of `width`. Local.
void resizeArray(ArrayBase &array, index rows, nanobind::handle width, nanobind::handle sizes);

/// The class dnds.Array.
void bindArray(nanobind::module_ &module);
/// Adds devices and DLPack to it.
void bindDevice(nanobind::module_ &module);

} // namespace DNDS::Python
