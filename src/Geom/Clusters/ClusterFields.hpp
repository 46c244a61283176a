/// @file ClusterFields.hpp
/// @brief Sparse fields on clusters of a mesh as fields of result files.
#pragma once

#include "DNDS/Base/Error.hpp"
#include "DNDS/Geom/Clusters/MeshClusters.hpp"
#include "DNDS/Geom/Source/MeshSlice.hpp"
#include "DNDS/Sparse/SparseField.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace DNDS::Geom {

namespace Detail {

/// A field of this rank's cells whose values `set` fills in. The slice owns its values.
template <class Set>
FieldSlice filledField(std::string name, int components, index cells, Set &&set) {
    const auto values = std::make_shared<std::vector<real>>(toSize(cells * components));
    set(*values);
    return {std::move(name), components, *values, values};
}

/// Appends the values of a field and its `.allocated` flags. Cells of clusters are scattered to their places in the
/// mesh; every own cell of the mesh is in one cluster, so all values are set. Memory on the device is copied block by
/// block.
template <class T>
void appendFields(const MeshClusters &clusters, const SparseField<T> &field, std::vector<FieldSlice> &fields) {
    DNDS_CHECK(field.pattern() == clusters.pattern(), ArgumentError,
               "'{}' is not on these clusters: make it with their pattern", field.name());
    index cells = 0;
    for (int b = 0; b < field.blocks(); ++b)
        cells += field.block(b).cells.size();
    const auto width = toSize(field.components());
    fields.push_back(filledField(field.name(), static_cast<int>(width), cells, [&](std::vector<real> &values) {
        std::vector<std::byte> copy;
        for (int b = 0; b < field.blocks(); ++b) {
            const T *const here = field.isAllocated(b) ? field.hostView(b, copy).data() : nullptr;
            for (index i = 0; i < field.block(b).cells.size(); ++i)
                for (std::size_t c = 0; c < width; ++c)
                    values[toSize(clusters.cells(b)[toSize(i)]) * width + c] =
                        static_cast<real>(here != nullptr ? here[toSize(i) * width + c] : field.defaultValue());
        }
    }));
    fields.push_back(filledField(field.name() + ".allocated", 1, cells, [&](std::vector<real> &values) {
        for (int b = 0; b < field.blocks(); ++b)
            for (index i = 0; i < field.block(b).cells.size(); ++i)
                values[toSize(clusters.cells(b)[toSize(i)])] = field.isAllocated(b) ? 1 : 0;
    }));
}

} // namespace Detail

/// Two fields of cells for each sparse field, for all writers of meshes: its values, the default where a cluster is
/// absent, and `<name>.allocated`, 1 where it is present and 0 elsewhere. Copies; stage 0.
///
///     MeshWriter writer(mesh, "species.vtkhdf");
///     writer.writeStep(time, {.cells = fieldsOf(clusters, dust, soot)});
///     writer.close();
///
/// Local. O(cells). Throws ArgumentError for fields on other clusters; MemoryError.
template <class... T>
std::vector<FieldSlice> fieldsOf(const MeshClusters &clusters, const SparseField<T> &...fields) {
    std::vector<FieldSlice> slices;
    (Detail::appendFields(clusters, fields, slices), ...);
    return slices;
}

} // namespace DNDS::Geom
