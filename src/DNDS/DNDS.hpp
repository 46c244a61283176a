/// @file DNDS.hpp
/// @brief All that a program needs to keep fields in distributed arrays, exchange ghosts and launch kernels. Meshes:
/// DNDS/Geom/Geom.hpp. Checkpoints, in a library of their own: DNDS/Serialize/Checkpoint.hpp. What few programs need
/// has headers of its own: tasks, blocks, sparse fields, and one-sided access (DNDS/OneSided/SymmetricHeap.hpp,
/// Window.hpp, GhostWindow.hpp).
#pragma once

#include "DNDS/Array/ArrayAdjacency.hpp"
#include "DNDS/Array/ArrayDof.hpp"
#include "DNDS/Array/ArrayMatrices.hpp"
#include "DNDS/Array/ArrayPair.hpp"
#include "DNDS/Array/ExactSums.hpp"
#include "DNDS/Base/Error.hpp"
#include "DNDS/Base/Types.hpp"
#include "DNDS/Base/Warning.hpp"
#include "DNDS/Device/DeviceBuffer.hpp"
#include "DNDS/Device/Event.hpp"
#include "DNDS/Device/Graph.hpp"
#include "DNDS/Device/ParallelFor.hpp"
#include "DNDS/Device/Stream.hpp"
#include "DNDS/Device/StreamUse.hpp"
#include "DNDS/Exchange/ExchangeGroup.hpp"
#include "DNDS/Exchange/Report.hpp"
#include "DNDS/Index/Redistribute.hpp"
#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Mpi/ExactSum.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Mpi/RunMain.hpp"
