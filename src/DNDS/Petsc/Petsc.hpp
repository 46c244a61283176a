/// @file Petsc.hpp
/// @brief All of DNDS::Petsc.
#pragma once

#include "DNDS/Petsc/Matrix.hpp"
#include "DNDS/Petsc/Session.hpp"
#include "DNDS/Petsc/ShellMatrix.hpp"
#include "DNDS/Petsc/Solver.hpp"
#include "DNDS/Petsc/Vector.hpp"
