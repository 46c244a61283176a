#include "MeshText.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace {

using DNDS::Geom::MeshReport;
using DNDS::Geom::PartitionReport;

using Json = nlohmann::ordered_json;

/// An object with a line for each of its keys. Names in files need not be UTF-8, but JSON must be.
std::string linesOf(const Json &object) {
    const auto dump = [](const Json &value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); };
    std::string text = "{";
    for (const auto &member : object.items())
        text += fmt::format("{}\n  {}: {}", text.size() > 1 ? "," : "", dump(member.key()), dump(member.value()));
    return text + "\n}\n";
}

/// Key of a message's kind: the text without names in quotes and numbers.
std::string kindOf(const std::string &message) {
    std::string kind;
    bool quoted = false;
    for (const char c : message) {
        quoted = quoted != (c == '\'');
        if (!quoted && (c < '0' || c > '9'))
            kind += c;
    }
    return kind;
}

/// One message of each kind, with the number of the others.
std::vector<std::string> oneOfEach(const std::vector<std::string> &messages) {
    std::map<std::string, std::size_t> count;
    for (const std::string &message : messages)
        count[kindOf(message)]++;
    std::vector<std::string> result;
    for (const std::string &message : messages) {
        const auto found = count.find(kindOf(message));
        if (found == count.end())
            continue;
        result.push_back(found->second == 1 ? message
                                            : fmt::format("{} (and {} more such)", message, found->second - 1));
        count.erase(found);
    }
    return result;
}

} // namespace

std::string messagesOf(const std::vector<std::string> &warnings, const std::vector<std::string> &notes) {
    std::string text;
    for (const std::string &warning : oneOfEach(warnings))
        text += fmt::format("warning: {}\n", warning);
    for (const std::string &note : oneOfEach(notes))
        text += fmt::format("note: {}\n", note);
    return text;
}

std::string jsonOf(const MeshReport &report) {
    Json cells = Json::object();
    for (const MeshReport::TypeCount &count : report.cells)
        cells[std::string(DNDS::Geom::elementInfo(count.type).name)] = count.count;
    Json box = Json::array();
    for (std::size_t d = 0; d < 3; d++)
        box.push_back(Json::array({report.lower[d], report.upper[d]}));
    Json boundaries = Json::object();
    for (const MeshReport::Patch &patch : report.patches) {
        Json &faces = boundaries[patch.name];
        faces = (faces.is_null() ? 0 : faces.get<DNDS::Index>()) + patch.faces;
    }
    Json object;
    object["cells"] = std::move(cells);
    object["cells_total"] = report.cellsTotal;
    object["nodes"] = report.nodes;
    object["measure"] = report.measure;
    object["volume"] = report.volume;
    object["bbox"] = std::move(box);
    object["boundaries"] = std::move(boundaries);
    object["faces_inner"] = report.innerFaces;
    object["faces_boundary"] = report.boundaryFaces;
    object["faces_unassigned"] = report.unassignedFaces;
    object["periodic_pairs"] = report.periodicPairs;
    object["warnings"] = oneOfEach(report.warnings);
    object["notes"] = oneOfEach(report.notes);
    return linesOf(object);
}

std::string jsonOf(const PartitionReport &report) {
    Json parts = Json::array();
    for (const PartitionReport::Part &part : report.parts)
        parts.push_back({{"cells", part.cells},
                         {"ghosts", part.ghosts},
                         {"peers", part.peers},
                         {"faces", part.faces},
                         {"weight", part.weight}});
    Json object;
    object["parts"] = std::move(parts);
    object["cut"] = report.cut;
    object["faces_inner"] = report.innerFaces;
    object["imbalance"] = report.imbalance;
    return linesOf(object);
}

std::string textOf(const MeshReport &report) {
    std::string text = fmt::format("{}\n", report.origin);
    auto out = std::back_inserter(text);
    fmt::format_to(out, "  cells       {:>12}\n", report.cellsTotal);
    for (const MeshReport::TypeCount &count : report.cells)
        fmt::format_to(out, "    {:<10}{:>12}\n", DNDS::Geom::elementInfo(count.type).name, count.count);
    fmt::format_to(out, "  nodes       {:>12}\n", report.nodes);
    const char *const measure = report.dimension == 2 ? "area" : "volume";
    fmt::format_to(out, "  {:<12}{:>12.6g}", measure, report.volume);
    if (report.turnedCells > 0)
        fmt::format_to(out, "  ({:.6g} as the file orients its cells)", report.measure);
    fmt::format_to(out, "\n  box         [{:.6g}, {:.6g}] x [{:.6g}, {:.6g}] x [{:.6g}, {:.6g}]\n", report.lower[0],
                   report.upper[0], report.lower[1], report.upper[1], report.lower[2], report.upper[2]);
    fmt::format_to(out, "  faces       {:>12} inside\n", report.innerFaces);
    fmt::format_to(out, "              {:>12} on the boundary\n", report.boundaryFaces);
    for (const MeshReport::Patch &patch : report.patches)
        fmt::format_to(out, "              {:>12}   {}{}{}\n", patch.faces, patch.name, patch.kind.empty() ? "" : ", ",
                       patch.kind);
    if (report.periodicPairs > 0)
        fmt::format_to(out, "              {:>12}   periodic pairs\n", report.periodicPairs);
    if (report.unassignedFaces > 0)
        fmt::format_to(out, "              {:>12}   unassigned\n", report.unassignedFaces);
    return text + messagesOf(report.warnings, report.notes);
}

std::string textOf(const PartitionReport &report) {
    const bool weighted = std::any_of(report.parts.begin(), report.parts.end(),
                                      [](const PartitionReport::Part &part) { return part.weight != part.cells; });
    std::string text = fmt::format("cut {} of {} inner faces, {} part {:.2f} % above average\n\n", report.cut,
                                   report.innerFaces, weighted ? "heaviest" : "largest", 100 * report.imbalance);
    auto out = std::back_inserter(text);
    fmt::format_to(out, "{:>6} {:>10} {:>10} {:>6} {:>10}{}\n", "part", "cells", "ghosts", "peers", "faces cut",
                   weighted ? fmt::format(" {:>10}", "weight") : "");
    for (std::size_t p = 0; p < report.parts.size(); p++) {
        const PartitionReport::Part &part = report.parts[p];
        fmt::format_to(out, "{:>6} {:>10} {:>10} {:>6} {:>10}{}\n", p, part.cells, part.ghosts, part.peers, part.faces,
                       weighted ? fmt::format(" {:>10}", part.weight) : "");
    }
    return text;
}

std::string partTable(const PartitionReport &report) {
    std::string text = "part,cells,ghosts,peers,faces,weight\n";
    for (std::size_t p = 0; p < report.parts.size(); p++) {
        const PartitionReport::Part &part = report.parts[p];
        text += fmt::format("{},{},{},{},{},{}\n", p, part.cells, part.ghosts, part.peers, part.faces, part.weight);
    }
    return text;
}

std::string linkTable(const PartitionReport &report) {
    std::string text = "part,other,ghosts\n";
    for (const PartitionReport::Link &link : report.links)
        text += fmt::format("{},{},{}\n", link.part, link.other, link.ghosts);
    return text;
}
