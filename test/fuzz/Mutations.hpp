/// @file Mutations.hpp
/// @brief Damages files in ways that readers meet: bits, numbers, lengths, missing and repeated parts.
#pragma once

#include "fuzz/Random.hpp"

#include <string>

namespace DNDS::Geom::fuzz {

/// One to four changes. `other` lends parts. Local.
std::string mutate(std::string bytes, const std::string &other, Random &random);

} // namespace DNDS::Geom::fuzz
