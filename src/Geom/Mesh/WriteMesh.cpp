#include "Geom/Mesh/WriteMesh.hpp"

#include "DNDS/Mpi/FailTogether.hpp"
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

OrderedFields nodesInOrder(const FileOrder &order, const std::vector<FieldSlice> &owned) {
    return {owned, [&](std::span<const real> values, int components) { return order.nodeValues(values, components); }};
}

OrderedFields cellsInOrder(const FileOrder &order, const std::vector<FieldSlice> &owned) {
    return {owned, [&](std::span<const real> values, int components) { return order.cellValues(values, components); }};
}

} // namespace

MeshWriter::MeshWriter(const UnstructuredMesh &mesh, std::string path, const MeshWriterOptions &options)
    : order_(mesh), writesRanks_(options.ranks), writer_(failTogether(mesh.comm, [&] {
          if (writesRanks_)
              ranks_.assign(toSize(mesh.cells.owned), static_cast<real>(mesh.comm.rank()));
          return VtkHdfWriter(mesh.comm, std::move(path), sliceOf(order_.mesh()));
      })) {}

void MeshWriter::writeStep(real time, const std::vector<FieldSlice> &nodeFields,
                           const std::vector<FieldSlice> &cellFields) {
    failTogether(order_.comm(), [&] {
        std::vector<FieldSlice> all = cellFields;
        if (writesRanks_)
            all.push_back({"rank", 1, ranks_});
        const OrderedFields nodes = nodesInOrder(order_, nodeFields);
        const OrderedFields cells = cellsInOrder(order_, all);
        writer_.writeStep(time, nodes.fields, cells.fields);
    });
}

void MeshWriter::close() { writer_.close(); }

void writeCgnsMesh(const UnstructuredMesh &mesh, const std::string &path, const std::vector<FieldSlice> &nodeFields,
                   const std::vector<FieldSlice> &cellFields, const CgnsWriteOptions &options) {
    failTogether(mesh.comm, [&] {
        const FileOrder order(mesh);
        const OrderedFields nodes = nodesInOrder(order, nodeFields);
        const OrderedFields cells = cellsInOrder(order, cellFields);
        writeCgns(mesh.comm, path, order.mesh(), nodes.fields, cells.fields, options);
    });
}

} // namespace DNDS::Geom
