#include "MeshText.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

namespace {

using DNDS::index;
using DNDS::real;
using DNDS::Geom::MeshReport;
using DNDS::Geom::PartitionReport;

std::string quoted(std::string_view text) {
    std::string result = "\"";
    for (const char c : text)
        if (c == '"' || c == '\\')
            result.append({'\\', c});
        else if (static_cast<unsigned char>(c) < 0x20)
            result += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        else
            result += c;
    return result + '"';
}

/// JSON has no numbers that are not finite.
std::string number(real value) { return std::isfinite(value) ? fmt::format("{}", value) : "null"; }

/// `open`, what `write` gives for each item, separated by commas, `close`.
template <class Items, class Write>
std::string joined(char open, const Items &items, char close, Write &&write) {
    std::string result(1, open);
    for (const auto &item : items) {
        if (result.size() > 1)
            result += ", ";
        result += write(item);
    }
    return result + close;
}

} // namespace

std::string jsonOf(const MeshReport &report) {
    const std::string cells = joined('{', report.cells, '}', [](const MeshReport::TypeCount &count) {
        return fmt::format("{}: {}", quoted(DNDS::Geom::elementInfo(count.type).name), count.count);
    });
    const std::string box = joined('[', std::array{0U, 1U, 2U}, ']', [&](std::size_t d) {
        return fmt::format("[{}, {}]", number(report.lower[d]), number(report.upper[d]));
    });
    const std::string boundaries = joined('{', report.patches, '}', [](const MeshReport::Patch &patch) {
        return fmt::format("{}: {}", quoted(patch.name), patch.faces);
    });
    const std::string warnings =
        joined('[', report.warnings, ']', [](const std::string &text) { return quoted(text); });
    return fmt::format("{{\n"
                       "  \"cells\": {},\n"
                       "  \"cells_total\": {},\n"
                       "  \"nodes\": {},\n"
                       "  \"measure\": {},\n"
                       "  \"volume\": {},\n"
                       "  \"bbox\": {},\n"
                       "  \"boundaries\": {},\n"
                       "  \"faces_inner\": {},\n"
                       "  \"faces_boundary\": {},\n"
                       "  \"faces_unassigned\": {},\n"
                       "  \"periodic_pairs\": {},\n"
                       "  \"warnings\": {}\n"
                       "}}\n",
                       cells, report.cellsTotal, report.nodes, number(report.measure), number(report.volume), box,
                       boundaries, report.innerFaces, report.boundaryFaces, report.unassignedFaces,
                       report.periodicPairs, warnings);
}

std::string jsonOf(const PartitionReport &report) {
    const std::string parts = joined('[', report.parts, ']', [](const PartitionReport::Part &part) {
        return fmt::format("{{\"cells\": {}, \"ghosts\": {}, \"peers\": {}, \"faces\": {}, \"weight\": {}}}",
                           part.cells, part.ghosts, part.peers, part.faces, part.weight);
    });
    return fmt::format("{{\n  \"parts\": {},\n  \"cut\": {},\n  \"faces_inner\": {},\n  \"imbalance\": {}\n}}\n", parts,
                       report.cut, report.innerFaces, number(report.imbalance));
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
    for (const std::string &warning : report.warnings)
        fmt::format_to(out, "warning: {}\n", warning);
    return text;
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
