#include "DNDS/GridFile/Netcdf.hpp"

#include "DNDS/Base/Error.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace DNDS {

const NetcdfAttribute *NetcdfVariable::attribute(std::string_view attributeName) const {
    const auto found = std::ranges::find(attributes, attributeName, &NetcdfAttribute::name);
    return found == attributes.end() ? nullptr : &*found;
}

// Empty if it is missing or holds numbers.
std::string NetcdfVariable::text(std::string_view attributeName) const {
    const NetcdfAttribute *found = attribute(attributeName);
    const auto *value = found == nullptr ? nullptr : std::get_if<std::string>(&found->value);
    return value == nullptr ? "" : *value;
}

std::vector<index> NetcdfVariable::shape() const {
    std::vector<index> lengths;
    for (const NetcdfDimension &dimension : dimensions)
        lengths.push_back(dimension.length);
    return lengths;
}

// As ncdump shows it, with lengths.
std::string NetcdfVariable::description() const {
    std::vector<std::string> parts;
    for (const NetcdfDimension &dimension : dimensions)
        parts.push_back(
            fmt::format("{}: {}{}", dimension.name, dimension.length, dimension.unlimited ? " (unlimited)" : ""));
    return fmt::format("{} {}({})", type, name, fmt::join(parts, ", "));
}

bool NetcdfContent::has(std::string_view variable) const {
    return std::ranges::find(variables, variable, &NetcdfVariable::name) != variables.end();
}

// The error lists what the file has, as the name is usually a misspelling.
const NetcdfVariable &NetcdfContent::variable(std::string_view name, std::string_view path) const {
    const auto found = std::ranges::find(variables, name, &NetcdfVariable::name);
    DNDS_CHECK(found != variables.end(), ArgumentError, "{} has no variable '{}', but\n{}", path, name, manifest());
    return *found;
}

// For errors, and for comparing files of ranks.
std::string NetcdfContent::manifest() const {
    std::string list;
    for (const NetcdfVariable &variable : variables) {
        const std::string units = variable.text("units");
        list += fmt::format("  {}{}{}\n", variable.description(), units.empty() ? "" : ", units: ", units);
    }
    return list.empty() ? "  no variables\n" : list;
}

// The leading dimension is picked first, unless its length is 1 and it is not that of steps. Then dimensions of length
// 1 are picked, from slow to fast, except where `shape` has a 1, until as many are left as `shape` has.
// Local; depends on the description alone, so all ranks pick the same.
std::vector<DimensionPick> picksFor(const NetcdfVariable &variable, const std::vector<index> &shape, index step) {
    std::vector<NetcdfDimension> left = variable.dimensions;
    std::vector<DimensionPick> picks;
    // Errors show the variable with its dimensions.
    const auto fail = [&](const std::string &why) {
        throw LayoutError(fmt::format("{} does not give an array of {} elements: {}", variable.description(),
                                      fmt::join(shape, " x "), why));
    };
    const auto pick = [&](std::size_t d, index at) {
        picks.push_back(atIndex(left[d].name, at));
        left.erase(left.begin() + static_cast<std::ptrdiff_t>(d));
    };
    // Of length 1, the steps 0 and -1 are as in any dimension.
    if (left.size() > shape.size() &&
        (left[0].unlimited || left[0].name == "time" || left[0].length != 1 || step > 0 || step < -1))
        pick(0, step);
    else if (step > 0)
        fail(fmt::format("it has no dimension of which step {} could be picked", step));
    for (std::size_t d = 0; d < left.size() && left.size() > shape.size();) {
        const bool wanted = d < shape.size() && shape[d] == 1;
        if (left[d].length == 1 && !wanted)
            pick(d, 0);
        else
            d++;
    }
    if (left.size() != shape.size())
        fail(fmt::format("{} of its dimensions must be picked: read it by NetcdfReader::read with picks",
                         static_cast<index>(variable.dimensions.size()) - static_cast<index>(shape.size())));
    for (std::size_t d = 0; d < shape.size(); d++)
        if (left[d].length != shape[d])
            fail(fmt::format("dimension {} has {} elements, not {}", left[d].name, left[d].length, shape[d]));
    return picks;
}

} // namespace DNDS
