/// @file PartitionBisection.cpp
/// @brief Cuts the grid by coordinates, for builds without a graph partitioner.
#include "Problem.hpp"

#include <algorithm>
#include <array>

namespace DNDS::Bench {

namespace {

using Corner = std::array<int, 3>;

/// Gives the box [low, high) to the parts [first, first + parts), always cutting across the longest side.
void bisect(std::vector<int> &part, int edge, Corner low, Corner high, int first, int parts) {
    if (parts == 1) {
        for (int z = low[2]; z < high[2]; ++z)
            for (int y = low[1]; y < high[1]; ++y) {
                const auto line = (static_cast<index>(z) * edge + y) * edge;
                std::fill(part.begin() + line + low[0], part.begin() + line + high[0], first);
            }
        return;
    }
    std::size_t axis = 0;
    for (std::size_t other = 1; other < 3; ++other)
        if (high[other] - low[other] > high[axis] - low[axis])
            axis = other;
    const int left = parts / 2;
    const int cut = low[axis] + static_cast<int>(static_cast<index>(high[axis] - low[axis]) * left / parts);
    Corner middleHigh = high;
    Corner middleLow = low;
    middleHigh[axis] = cut;
    middleLow[axis] = cut;
    bisect(part, edge, low, middleHigh, first, left);
    bisect(part, edge, middleLow, high, first + left, parts - left);
}

} // namespace

std::string partitionerName() { return "bisection"; }

std::vector<int> partitionGrid(CommunicatorView comm, int edge) {
    std::vector<int> part(static_cast<std::size_t>(edge) * static_cast<std::size_t>(edge) *
                          static_cast<std::size_t>(edge));
    bisect(part, edge, {0, 0, 0}, {edge, edge, edge}, 0, comm.size());
    return part;
}

} // namespace DNDS::Bench
