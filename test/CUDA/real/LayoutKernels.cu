// Kernels that read a member after each type of view: scripts/gpu/layout.py compares where they read it with where the
// host puts it. They are compiled only.

#include "DNDS/Array/ArrayAdjacency.hpp"
#include "DNDS/Array/ArrayMatrices.hpp"
#include "DNDS/Array/ArrayPair.hpp"
#include "DNDS/Blocks/BlockPack.hpp"
#include "DNDS/Blocks/BlockView.hpp"
#include "DNDS/Geom/Elements/ReferenceElement.hpp"
#include "DNDS/Geom/Mesh/MeshView.hpp"
#include "DNDS/OneSided/KernelViews.hpp"
#include "DNDS/Sparse/SparseField.hpp"
#include "DNDS/Storage/ArrayView.hpp"
#include "DNDS/Task/KernelRows.hpp"
#include "DNDS/Task/Value.hpp"

#include <cstddef>

namespace DNDS::Layouts {

// Views with bases are of standard layout nowhere; both compilers know the offset all the same.
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
#pragma nv_diag_suppress 1427 // the same warning of nvcc

/// A functor as users write them: a view, then a number.
template <class View>
struct Followed {
    View view;
    double after;
};

/// As large as the host's offset of `after`.
template <class View>
struct HostOffset {
    char bytes[offsetof(Followed<View>, after)];
};

template <class View>
__global__ void memberAfter(Followed<View> functor, HostOffset<View> /*offset*/, double *result) {
    *result = functor.after;
}

template <class... Views>
void compileAll() {
    (memberAfter<Views><<<1, 1>>>(Followed<Views>{}, HostOffset<Views>{}, nullptr), ...);
}

// StaticFixed, Fixed, StaticMax, Max and CSR rows, and all that stands on them.
using Rows = ArrayView<real, 5>;
using Matrices = ArrayEigenMatrixView<real, 3, 3, 3, 3, NoAlign>;
template void
compileAll<Rows, ArrayView<const real, 1>, ArrayView<real, DynamicSize>, ArrayView<real, NonUniformSize, 4>,
           ArrayView<real, NonUniformSize, DynamicSize>, ArrayView<real, NonUniformSize, NonUniformSize>,
           ArrayView<real, 5, 5, 64>, Matrices, ArrayEigenMatrixView<real, DynamicSize, 3, DynamicSize, 3, NoAlign>,
           ArrayEigenUniMatrixBatchView<real, 3, 3>, ArrayEigenUniMatrixBatchView<real, DynamicSize, 3>,
           ArrayEigenMatrixBatchView<real>, ArrayPairView<Rows>, ArrayPairView<Matrices>,
           Geom::LocalAdjacency::ConstView, BlockView<real>, BlockPackView<real>, HeapView, WindowView,
           GhostWindowView<real>, Task::Rows<Rows>, Task::Rows<ArrayPairView<Rows>>,
           Task::WrittenRows<ArrayPairView<Rows>>, Task::AddedRows<ArrayPairView<Rows>>, Task::ReadValue<real>,
           Geom::MeshView, Geom::QuadratureSetView>();

} // namespace DNDS::Layouts
