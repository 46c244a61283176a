/// @file Geom.hpp
/// @brief All that a program needs to read or make a mesh, distribute it, put fields on it and write them.
#pragma once

#include "DNDS/DNDS.hpp"
#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Elements/ElementMap.hpp"
#include "DNDS/Geom/Elements/ReferenceElement.hpp"
#include "DNDS/Geom/Generate/BoxMesh.hpp"
#include "DNDS/Geom/Locate/Probe.hpp"
#include "DNDS/Geom/Mesh/MeshView.hpp"
#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"
#include "DNDS/Geom/Partition/GraphPartition.hpp"
#include "DNDS/Geom/Read/ReadMesh.hpp"
#include "DNDS/Geom/Refine/RefineUniformly.hpp"
#include "DNDS/Geom/Write/WriteMesh.hpp"
