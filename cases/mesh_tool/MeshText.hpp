// The output of dnds-mesh.
#pragma once

#include "DNDS/Geom/Build/PartitionReport.hpp"
#include "DNDS/Geom/Source/MeshReport.hpp"

#include <string>

/// One JSON object; numbers read back to the same bits.
std::string jsonOf(const DNDS::Geom::MeshReport &report);
std::string jsonOf(const DNDS::Geom::PartitionReport &report);

/// A few lines of text.
std::string textOf(const DNDS::Geom::MeshReport &report);
std::string textOf(const DNDS::Geom::PartitionReport &report);

/// Tables for plot.py: one line per part, and one per pair of parts.
std::string partTable(const DNDS::Geom::PartitionReport &report);
std::string linkTable(const DNDS::Geom::PartitionReport &report);
