#include "AnyArray.hpp"
#include "BlockHandles.hpp"
#include "Checkpoints.hpp"
#include "Comm.hpp"
#include "Errors.hpp"
#include "Exchanger.hpp"
#include "Field.hpp"
#include "MeshHandle.hpp"
#include "SparseHandle.hpp"
#include "Tasks.hpp"

#include <nanobind/nanobind.h>

NB_MODULE(_core, module) {
    using namespace DNDS::Python;
    module.doc() = "Distributed arrays with ghost rows for unstructured-mesh solvers on MPI.";
    module.attr("__version__") = DNDS_PYTHON_VERSION;
    bindErrors(module);
    bindComm(module);
    bindArray(module);
    bindDevice(module);
    bindPending(module);
    bindField(module);
    bindFieldOperations(module);
    bindFieldGroup(module);
    bindBlockGrid(module);
    bindBlockField(module);
    bindBlockVectors(module);
    bindBlockBoundary(module);
    bindBlockCopy(module);
    bindBlockFiles(module);
    bindSparse(module);
    bindSource(module);
    bindSourceClusters(module);
    bindMesh(module);
    bindMeshLists(module);
    bindMeshParts(module);
    bindMeshOutput(module);
    bindProbes(module);
    bindMeshClusters(module);
    bindSeenRows(module);
    bindGraph(module);
    bindPlan(module);
    bindCheckpoint(module);
}
