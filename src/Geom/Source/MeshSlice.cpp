#include "DNDS/Geom/Source/MeshSlice.hpp"

#include "DNDS/Mpi/FailTogether.hpp"

#include <algorithm>

namespace DNDS::Geom {

FieldSlice componentOf(const FieldSlice &field, int component) {
    DNDS_CHECK(component >= 0 && component < std::max(field.components, 1), IndexError,
               "field '{}' has {} components, none of which is number {}: they count from 0", field.name,
               field.components, component);
    const auto width = static_cast<std::size_t>(std::max(field.components, 1));
    // The slice owns its values, unlike slices of the caller's memory.
    const auto copy = std::make_shared<std::vector<real>>(field.values.size() / width);
    for (std::size_t row = 0; row < copy->size(); row++)
        (*copy)[row] = field.values[row * width + static_cast<std::size_t>(component)];
    return {field.name, 1, *copy, copy};
}

// Slashes separate names in HDF5.
void checkField(const FieldSlice &field, index rows, std::string_view what) {
    DNDS_CHECK(!field.name.empty() && field.name.find('/') == std::string::npos, ArgumentError,
               "'{}' is not a valid {} field name: it must not be empty or contain /", field.name, what);
    DNDS_CHECK(field.components >= 1, ArgumentError, "{} field '{}' has {} components: it must have at least 1", what,
               field.name, field.components);
    DNDS_CHECK(static_cast<index>(field.values.size()) == rows * field.components, ArgumentError,
               "{} field '{}' has {} values, but this rank writes {} {}s of {} component{}: {} values", what,
               field.name, field.values.size(), rows, what, field.components, field.components == 1 ? "" : "s",
               rows * field.components);
}

/// Descriptions are compared as text with rank 0's, so that an error can quote both. Writers make collective calls
/// field by field: a rank with another list would leave the others waiting.
/// O(fields) text; the messages are those of requireSame.
void requireSameFields(CommunicatorView comm, std::span<const FieldSlice> pointFields,
                       std::span<const FieldSlice> cellFields) {
    std::vector<std::string> mine;
    const auto add = [&](std::string_view what, std::span<const FieldSlice> fields) {
        for (const FieldSlice &field : fields)
            mine.push_back(fmt::format("{} field '{}' of {} component{}", what, field.name, field.components,
                                       field.components == 1 ? "" : "s"));
    };
    add("point", pointFields);
    add("cell", cellFields);
    requireSame(comm, mine, [&](std::size_t f, const std::string *first) {
        throw ArgumentError(
            fmt::format("fields differ between ranks: here {}, on rank 0 {}. Give the same fields on all ranks, in "
                        "the same order",
                        f < mine.size() ? mine[f] : "no more fields", first != nullptr ? *first : "no more fields"));
    });
}

/// O(fields^2) comparisons of names; files have tens of fields.
std::vector<FieldSlice> slicesOf(const std::vector<MeshField> &fields) {
    std::vector<FieldSlice> slices;
    for (const MeshField &field : fields) {
        const auto namesakes =
            std::count_if(fields.begin(), fields.end(), [&](const MeshField &f) { return f.name == field.name; });
        slices.push_back({namesakes > 1 ? field.solution + "." + field.name : field.name, 1, field.values});
    }
    return slices;
}

} // namespace DNDS::Geom
