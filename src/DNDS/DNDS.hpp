/// @file DNDS.hpp
/// @brief Everything that a program needs to keep fields in distributed arrays and exchange ghosts. Meshes:
/// DNDS/Geom/Geom.hpp, which includes it. Other parts have their own headers: kernels and streams (DNDS/Device), tasks,
/// linear systems, and the libraries DNDS::Blocks, DNDS::Sparse, DNDS::OneSided and DNDS::Files
/// (docs/reference/headers.md).
#pragma once

#include "DNDS/Array/ArrayDof.hpp"
#include "DNDS/Array/ArrayPair.hpp"
#include "DNDS/Base/Error.hpp"
#include "DNDS/Exchange/ExchangeGroup.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Mpi/Reductions.hpp"
#include "DNDS/Mpi/RunMain.hpp"
