/// @file Mutations.hpp
/// @brief Damages files in ways that readers meet: bits, numbers, lengths, missing and repeated parts.
#pragma once

#include "fuzz/Random.hpp"

#include <string>

namespace DNDS::Geom::fuzz {

/// One to four changes. `other` lends parts. Local. `inPlace`: most files keep their length, because in containers any
/// other place than the one expected means the end.
std::string mutate(std::string bytes, const std::string &other, bool inPlace, Random &random);

} // namespace DNDS::Geom::fuzz
