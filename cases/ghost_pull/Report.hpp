// Checks, measurements and output of the ghost_pull program: nothing here is needed to use DNDS.
#pragma once

#include "DNDS/Array/ArrayPair.hpp"

#include <span>
#include <string>

/// Five values per cell, as a compressible flow in three dimensions has.
using Field = DNDS::ParArray<DNDS::real, 5>;

/// The number, over all ranks, of ghost rows that differ in any bit from their owner's. Collective. The owners' rows
/// are gathered on every rank by MPI_Allgatherv, without DNDS: a check for a demonstration, not for a solver.
DNDS::Index countWrongGhosts(DNDS::CommunicatorView comm, const DNDS::ArrayPair<Field> &u);

/// This rank's median time of a pull in microseconds, without other work. Collective.
double medianPullTime(DNDS::CommunicatorView comm, DNDS::ArrayPair<Field> &u);

/// Prints a table of all ranks and, unless `output` is empty, writes cells.csv, peers.csv and ranks.csv into that
/// folder. `corners` are those of this rank's cells: [cells x 6]. Collective.
void report(DNDS::CommunicatorView comm, const DNDS::ArrayPair<Field> &u, double pullTime,
            std::span<const DNDS::real> corners, const std::string &output);
