/// @file NetcdfContent.hpp
/// @brief The contents of a NetCDF file as plain data: dimensions, variables, attributes.
#pragma once

#include "DNDS/Base/ElementKind.hpp"
#include "DNDS/Base/Types.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace DNDS {

/// Text, or one or several numbers; their type in the file is `NetcdfAttribute::kind`.
using NetcdfValue = std::variant<std::string, std::vector<std::int64_t>, std::vector<std::uint64_t>, std::vector<real>>;

/// An attribute of a file or variable.
struct NetcdfAttribute {
    std::string name;
    ElementKind kind = ElementKind::Opaque; ///< Opaque: text
    NetcdfValue value;

    NetcdfAttribute() = default;
    /// A text; one number as Float64; or values, which the file stores as `type`.
    NetcdfAttribute(std::string attribute, std::string text) : name(std::move(attribute)), value(std::move(text)) {}
    NetcdfAttribute(std::string attribute, const char *text)
        : NetcdfAttribute(std::move(attribute), std::string(text)) {}
    NetcdfAttribute(std::string attribute, real number)
        : name(std::move(attribute)), kind(ElementKind::Float64), value(std::vector<real>{number}) {}
    NetcdfAttribute(std::string attribute, ElementKind type, NetcdfValue values)
        : name(std::move(attribute)), kind(type), value(std::move(values)) {}

    friend bool operator==(const NetcdfAttribute &, const NetcdfAttribute &) = default;
};

/// A dimension of a file.
struct NetcdfDimension {
    std::string name;
    index length = 0;       ///< current length, if it is unlimited
    bool unlimited = false; ///< grows as records are written

    friend bool operator==(const NetcdfDimension &, const NetcdfDimension &) = default;
};

/// A variable of a file, without its numbers.
struct NetcdfVariable {
    std::string name;                        ///< "group/name" for variables in groups
    ElementKind kind = ElementKind::Opaque;  ///< Opaque: not numbers, see `type`
    std::string type;                        ///< for messages: "int16", "char", "string", ...
    std::vector<NetcdfDimension> dimensions; ///< slowest first
    std::vector<NetcdfAttribute> attributes;

    /// The attribute of this name, or null. Local.
    const NetcdfAttribute *attribute(std::string_view attributeName) const;
    /// The text of an attribute ("units", "long_name"), or "". Local.
    std::string text(std::string_view attributeName) const;
    std::vector<index> shape() const;
    /// For example "int16 z(month: 2, level: 3, latitude: 241, longitude: 480)".
    std::string description() const;
};

/// The contents of a NetCDF file without the numbers themselves.
struct NetcdfContent {
    std::string format; ///< "CDF-1", "CDF-2", "CDF-5", "NetCDF-4"
    std::vector<NetcdfDimension> dimensions;
    std::vector<NetcdfVariable> variables;
    std::vector<NetcdfAttribute> attributes;

    /// Whether the file has a variable of this name. Local.
    bool has(std::string_view variable) const;
    /// Local. @throws ArgumentError for an unknown name; it lists all variables with their shapes.
    const NetcdfVariable &variable(std::string_view name, std::string_view path) const;
    /// All variables with types, shapes and units, one per line.
    std::string manifest() const;
};

/// One index of a dimension, which is dropped from the shape.
struct DimensionPick {
    std::string dimension;
    bool byValue = false;
    index at = 0;   ///< its index; negative: counted from the end, -1 is the last one
    real value = 0; ///< with `byValue`: the nearest coordinate is taken
};

/// The `at`-th index of a dimension; -1: the last one.
inline DimensionPick atIndex(std::string dimension, index at) { return {std::move(dimension), false, at, 0}; }
/// The place whose coordinate (variable of the dimension's name) is nearest to `value`, in its units.
inline DimensionPick atValue(std::string dimension, real value) { return {std::move(dimension), true, 0, value}; }

/// The dimensions of a variable to pick so that `shape` remains: extra dimensions of length 1, and a leading dimension
/// at index `step`. Local. @throws LayoutError, which shows both shapes.
std::vector<DimensionPick> picksFor(const NetcdfVariable &variable, const std::vector<index> &shape, index step);

} // namespace DNDS
