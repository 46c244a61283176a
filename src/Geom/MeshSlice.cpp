#include "Geom/MeshSlice.hpp"

#include "Geom/MeshFields.hpp"

#include <algorithm>
#include <array>
#include <functional>

namespace DNDS::Geom {

void checkField(const FieldSlice &field, index rows, std::string_view what) {
    DNDS_CHECK(!field.name.empty() && field.name.find('/') == std::string::npos, ArgumentError,
               "'{}' is no name of a field", field.name);
    DNDS_CHECK(field.components >= 1 && static_cast<index>(field.values.size()) == rows * field.components,
               ArgumentError, "{} field {} of {} components has {} values for {} rows", what, field.name,
               field.components, field.values.size(), rows);
}

void needSameFields(CommunicatorView comm, std::span<const FieldSlice> pointFields,
                    std::span<const FieldSlice> cellFields) {
    std::string names;
    for (const std::span<const FieldSlice> fields : {pointFields, cellFields}) {
        for (const FieldSlice &field : fields)
            names += fmt::format("{}/{}/", field.name, field.components);
        names += "//";
    }
    const auto hash = static_cast<index>(std::hash<std::string>()(names) >> 1);
    std::array<index, 2> extremes{hash, -hash};
    comm.allReduce(extremes.data(), 2, MPI_MIN);
    comm.guarded([&] {
        DNDS_CHECK(extremes[0] == -extremes[1], ArgumentError, "ranks name different fields; here: {}", names);
    });
}

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
