// The output of dnds-mesh.
#pragma once

#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Source/SourceChecks.hpp"

#include <string>
#include <vector>

/// One JSON object; numbers read back to the same bits.
std::string jsonOf(const DNDS::Geom::MeshReport &report);
std::string jsonOf(const DNDS::Geom::PartitionReport &report);

/// A few lines of text.
std::string textOf(const DNDS::Geom::MeshReport &report);
std::string textOf(const DNDS::Geom::PartitionReport &report);

/// "warning: ..." and "note: ..." lines: one of each kind, with the number of messages that differ from it only in
/// names and numbers.
std::string messagesOf(const std::vector<std::string> &warnings, const std::vector<std::string> &notes);

/// Tables for plot.py: one line per part, and one per pair of parts.
std::string partTable(const DNDS::Geom::PartitionReport &report);
std::string linkTable(const DNDS::Geom::PartitionReport &report);
