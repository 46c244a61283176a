#include "DNDS/Geom/Write/WriteMesh.hpp"

#include "DNDS/Geom/Source/NumberTable.hpp"
#include "DNDS/Mpi/FailTogether.hpp"

namespace DNDS::Geom {

namespace {

/// Fields in file order, and their memory.
/// Slices refer to `values`, which is reserved so that it does not move.
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

/// The fields of a step in file order. Collective, in `failTogether`.
struct OrderedStep {
    OrderedFields nodes;
    OrderedFields cells;

    OrderedStep(const FileOrder &order, const StepFields &fields, index ownedNodes, index ownedCells)
        : nodes(checked(fields.nodes, ownedNodes, "node"),
                [&](std::span<const real> values, int components) { return order.nodeValues(values, components); }),
          cells(checked(fields.cells, ownedCells, "cell"),
                [&](std::span<const real> values, int components) { return order.cellValues(values, components); }) {}

  private:
    /// Here errors can still name the field.
    static const std::vector<FieldSlice> &checked(const std::vector<FieldSlice> &fields, index owned,
                                                  std::string_view what) {
        for (const FieldSlice &field : fields)
            checkField(field, owned, what);
        return fields;
    }
};

} // namespace

// `order_` comes first: the writer takes its block and keeps no reference. `ranks_` is declared before `writer_`, so
// that setRanks may fill it here.
MeshWriter::MeshWriter(const UnstructuredMesh &mesh, std::string path, const MeshWriterOptions &options)
    : order_(mesh), ownedNodes_(mesh.nodes.owned), ownedCells_(mesh.cells.owned), writesRanks_(options.ranks),
      writer_(failTogether(mesh.comm, [&] {
          setRanks();
          return VtkHdfWriter(mesh.comm, std::move(path), sliceOf(order_.mesh()));
      })) {}

// The field has to follow each repartitioning.
void MeshWriter::setRanks() {
    if (writesRanks_)
        ranks_.assign(toSize(ownedCells_), static_cast<real>(order_.comm().rank()));
}

/// The blocks of both meshes must be equal, bit by bit: then the file's mesh is still right, and only the routes
/// change.
/// The cost is that of FileOrder; comparing the blocks needs no message, as blocks in file order do not depend on
/// the partition.
void MeshWriter::moved(const UnstructuredMesh &mesh) {
    failTogether(order_.comm(), [&] {
        // The present routes stay until the mesh has passed: a refused one changes nothing.
        FileOrder order(mesh);
        const SourceMesh &now = order.mesh(), &before = order_.mesh();
        DNDS_CHECK(now.nodes() == before.nodes() && now.cells.size() == before.cells.size(), ArgumentError,
                   "{} was repartitioned, but this is another mesh: {} cells and {} nodes in this block, instead of {} "
                   "and {}",
                   before.origin, now.cells.size(), now.nodes(), before.cells.size(), before.nodes());
        DNDS_CHECK(now.cells.types == before.cells.types && now.cells.nodes == before.cells.nodes &&
                       now.coordinates == before.coordinates,
                   ArgumentError, "{} was repartitioned, but this is another mesh: it has other cells or coordinates",
                   before.origin);
        order_ = std::move(order);
        ownedNodes_ = mesh.nodes.owned;
        ownedCells_ = mesh.cells.owned;
        setRanks();
    });
}

void MeshWriter::writeStep(real time, const StepFields &fields) {
    const ActivityScope activity("writeStep");
    failTogether(order_.comm(), [&] {
        StepFields all = fields;
        if (writesRanks_)
            all.cells.push_back({"rank", 1, ranks_});
        requireSameFields(order_.comm(), all.nodes, all.cells); // all ranks send each together
        const OrderedStep ordered(order_, all, ownedNodes_, ownedCells_);
        writer_.writeStep(time, ordered.nodes.fields, ordered.cells.fields);
    });
}

index MeshWriter::continueFrom(const std::string &path, real last) { return writer_.continueFrom(path, last); }

void MeshWriter::close() { writer_.close(); }

// Fields are compared before the first exchange, in which all ranks must take part.
void writeCgnsMesh(const UnstructuredMesh &mesh, const std::string &path, const StepFields &fields,
                   const CgnsWriteOptions &options) {
    failTogether(mesh.comm, [&] {
        requireSameFields(mesh.comm, fields.nodes, fields.cells);
        const FileOrder order(mesh);
        const OrderedStep ordered(order, fields, mesh.nodes.owned, mesh.cells.owned);
        writeCgns(mesh.comm, path, order.mesh(), ordered.nodes.fields, ordered.cells.fields, options);
    });
}

} // namespace DNDS::Geom
