#include "Geom/Mesh/WriteMesh.hpp"

#include "Geom/Mesh/NumberTable.hpp"

namespace DNDS::Geom {

namespace {

/// Fields in file order, and the memory that they are in.
struct OrderedFields {
    std::vector<std::vector<real>> values;
    std::vector<FieldSlice> fields;

    template <class Reorder>
    OrderedFields(const std::vector<FieldSlice> &owned, Reorder &&reorder) {
        values.reserve(owned.size());
        for (const FieldSlice &field : owned) {
            values.push_back(reorder(field.values, field.components));
            fields.push_back({field.name, field.components, values.back()});
        }
    }
};

} // namespace

MeshWriter::MeshWriter(const UnstructuredMesh &mesh, std::string path, const MeshWriterOptions &options)
    : order_(mesh), writesRanks_(options.ranks), writer_(mesh.comm, std::move(path), sliceOf(order_.mesh())) {
    if (writesRanks_)
        ranks_.assign(toSize(mesh.cells.owned), static_cast<real>(mesh.comm.rank()));
}

void MeshWriter::writeStep(real time, const std::vector<FieldSlice> &nodeFields,
                           const std::vector<FieldSlice> &cellFields) {
    std::vector<FieldSlice> all = cellFields;
    if (writesRanks_)
        all.push_back({"rank", 1, ranks_});
    const OrderedFields nodes(
        nodeFields, [&](std::span<const real> owned, int components) { return order_.nodeValues(owned, components); });
    const OrderedFields cells(
        all, [&](std::span<const real> owned, int components) { return order_.cellValues(owned, components); });
    writer_.writeStep(time, nodes.fields, cells.fields);
}

void MeshWriter::close() { writer_.close(); }

} // namespace DNDS::Geom
