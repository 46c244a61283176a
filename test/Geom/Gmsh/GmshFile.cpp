#include "Geom/Gmsh/GmshFile.hpp"

#include "DNDS/Base/Error.hpp"

#include <algorithm>
#include <cstring>
#include <map>

namespace DNDS::Geom::test {

namespace {

class Writer {
  public:
    Writer(const SourceMesh &mesh, const GmshFileOptions &options) : mesh_(mesh), options_(options) {}

    std::string run() {
        line("$MeshFormat");
        line(fmt::format("{}.{} {} 8", options_.version / 10, options_.version % 10, options_.binary ? 1 : 0));
        if (options_.binary) {
            raw<std::int32_t>(1);
            line("");
        }
        line("$EndMeshFormat");
        line("$PhysicalNames");
        line(std::to_string(mesh_.patches.size() + 1));
        for (std::size_t p = 0; p < mesh_.patches.size(); p++)
            line(fmt::format("{} {} \"{}\"", mesh_.cellDimension - 1, 10 * (p + 1), mesh_.patches[p].name));
        line(fmt::format("{} 99 \"the fluid\"", mesh_.cellDimension));
        line("$EndPhysicalNames");
        if (options_.version >= 40) {
            entities();
            pieces();
            nodes4();
            elements4();
        } else {
            nodes2();
            elements2();
        }
        line("$NodeData"); // sections of results are passed over
        line("1");
        line("\"pressure\"");
        line("$EndNodeData");
        return std::move(text_);
    }

  private:
    void line(const std::string &s) { text_ += s + options_.newline; }
    template <class T>
    void raw(T value) {
        std::array<char, sizeof(T)> bytes;
        std::memcpy(bytes.data(), &value, sizeof(T));
        if (options_.swapped)
            std::reverse(bytes.begin(), bytes.end());
        text_.append(bytes.data(), bytes.size());
    }
    void separate() {
        if (!text_.empty() && text_.back() != ' ' && text_.back() != '\n')
            text_ += ' ';
    }
    void integer(index value) { options_.binary ? raw(static_cast<std::int32_t>(value)) : word(std::to_string(value)); }
    void size(index value) {
        options_.binary &&options_.version >= 40 ? raw(static_cast<std::int64_t>(value)) : integer(value);
    }
    /// A size in version 4.1, an integer in others.
    void size41(index value) { options_.version == 41 ? size(value) : integer(value); }
    void entityOf(index dimension, index tag) {
        integer(options_.version == 41 ? dimension : tag);
        integer(options_.version == 41 ? tag : dimension);
    }
    void totals(index blocks, index entries) {
        size(blocks);
        size(entries);
        for (const index tag : {1, 1000000})
            if (options_.version == 41)
                size(tag);
        endRecord();
    }
    void number(real value) { options_.binary ? raw(value) : word(fmt::format("{:.17g}", value)); }
    void word(const std::string &s) {
        separate();
        text_ += s;
    }
    void endRecord() {
        if (!options_.binary)
            text_ += options_.newline;
    }
    void endBlock() {
        if (options_.binary)
            text_ += options_.newline;
    }

    void entities() {
        line("$Entities");
        const auto faces = static_cast<index>(mesh_.patches.size());
        const bool flat = mesh_.cellDimension == 2;
        for (const index count : {index{1}, flat ? faces : 0, flat ? 1 : faces, index{flat ? 0 : 1}})
            size(count);
        endRecord();
        integer(5);
        restOfPoint();
        const auto entity = [&](index tag, index group) {
            integer(tag);
            for (int k = 0; k < 6; k++)
                number(k < 3 ? 0 : 1);
            size(1);
            integer(group);
            size(1);
            integer(7);
            endRecord();
        };
        for (index f = 0; f < faces; f++)
            entity(f + 1, 10 * (f + 1));
        entity(1, 99);
        endBlock();
        line("$EndEntities");
    }

    void restOfPoint() {
        for (int k = 0; k < (options_.version == 41 ? 3 : 6); k++)
            number(0.5);
        size(1);
        integer(10); // the group of a curve, too
        endRecord();
    }

    /// A point in two partitions, and a ghost.
    void pieces() {
        line("$PartitionedEntities");
        size41(2);
        endRecord();
        size41(1);
        endRecord();
        integer(21);
        integer(1);
        endRecord();
        for (const index count : {1, 0, 0, 0})
            size(count);
        endRecord();
        for (const index value : {9, 0, 5})
            integer(value);
        size41(2);
        integer(1);
        integer(2);
        restOfPoint();
        endBlock();
        line("$EndPartitionedEntities");
    }

    void nodes2() {
        line("$Nodes");
        line(std::to_string(mesh_.nodes()));
        for (index i = 0; i < mesh_.nodes(); i++) {
            integer(options_.tagOf(i));
            for (const real x : mesh_.coordinates[static_cast<std::size_t>(i)])
                number(x);
            endRecord();
        }
        endBlock();
        line("$EndNodes");
    }

    void nodes4() {
        line("$Nodes");
        const index blocks = (mesh_.nodes() + options_.nodeBlock - 1) / options_.nodeBlock + 1; // and one without nodes
        totals(blocks, mesh_.nodes());
        for (index b = 0; b < blocks; b++) {
            const index begin = std::min(b * options_.nodeBlock, mesh_.nodes());
            const index end = std::min(begin + options_.nodeBlock, mesh_.nodes());
            const index dimension = b % 3 == 1 ? 3 : 2;
            const index parametric = b % 3 == 0 ? 0 : 1;
            entityOf(dimension, b + 1);
            integer(parametric);
            size(end - begin);
            endRecord();
            for (index i = begin; i < end && options_.version == 41; i++) {
                size(options_.tagOf(i));
                endRecord();
            }
            for (index i = begin; i < end; i++) {
                if (options_.version == 40)
                    integer(options_.tagOf(i));
                for (const real x : mesh_.coordinates[static_cast<std::size_t>(i)])
                    number(x);
                for (index k = 0; k < (options_.version == 40 && dimension == 3 ? 0 : parametric * dimension); k++)
                    number(0.5);
                endRecord();
            }
        }
        endBlock();
        line("$EndNodes");
    }

    /// Visits faces, then cells, as files of Gmsh do.
    template <class Visit>
    void forEachElement(Visit &&visit) {
        for (index f = 0; f < mesh_.faces.size(); f++)
            visit(mesh_.faces, f, index{mesh_.faceMarks[static_cast<std::size_t>(f)]} + 1, false);
        for (index c = 0; c < mesh_.cells.size(); c++)
            visit(mesh_.cells, c, index{1}, true);
    }

    void elementNodes(const ElementBlock &block, index e) {
        for (const index node : block.nodesOf(e))
            size41(options_.tagOf(node));
        endRecord();
    }

    void elements2() {
        line("$Elements");
        line(std::to_string(mesh_.faces.size() + mesh_.cells.size()));
        index tag = 1;
        forEachElement([&](const ElementBlock &block, index e, index entity, bool cell) {
            const int type = gmshTypeOf(block.types[static_cast<std::size_t>(e)]);
            if (options_.binary) { // a block for each
                for (const index value : {index{type}, index{1}, index{2}})
                    integer(value);
                integer(tag++);
            } else {
                for (const index value : {tag++, index{type}, index{2}})
                    integer(value);
            }
            integer(cell ? 99 : 10 * entity);
            integer(entity);
            elementNodes(block, e);
        });
        endBlock();
        line("$EndElements");
    }

    /// Runs of elements of one type on one entity are blocks.
    void elements4() {
        struct Run {
            index entity;
            int type;
            bool cell;
            std::vector<std::pair<const ElementBlock *, index>> elements;
        };
        std::vector<Run> runs;
        forEachElement([&](const ElementBlock &block, index e, index entity, bool cell) {
            const int type = gmshTypeOf(block.types[static_cast<std::size_t>(e)]);
            if (runs.empty() || runs.back().entity != entity || runs.back().type != type || runs.back().cell != cell)
                runs.push_back({entity, type, cell, {}});
            runs.back().elements.emplace_back(&block, e);
        });
        line("$Elements");
        totals(static_cast<index>(runs.size()), mesh_.faces.size() + mesh_.cells.size());
        index tag = 1;
        for (const Run &run : runs) {
            entityOf(run.cell ? mesh_.cellDimension : mesh_.cellDimension - 1, run.entity);
            integer(run.type);
            size(static_cast<index>(run.elements.size()));
            endRecord();
            for (const auto &[block, e] : run.elements) {
                size41(tag++);
                elementNodes(*block, e);
            }
        }
        endBlock();
        line("$EndElements");
    }

    const SourceMesh &mesh_;
    const GmshFileOptions &options_;
    std::string text_;
};

} // namespace

int gmshTypeOf(ElementType type) {
    static const std::map<ElementType, int> numbers{
        {ElementType::Bar2, 1},     {ElementType::Tri3, 2},     {ElementType::Quad4, 3},    {ElementType::Tetra4, 4},
        {ElementType::Hexa8, 5},    {ElementType::Penta6, 6},   {ElementType::Pyra5, 7},    {ElementType::Bar3, 8},
        {ElementType::Tri6, 9},     {ElementType::Quad9, 10},   {ElementType::Tetra10, 11}, {ElementType::Hexa27, 12},
        {ElementType::Penta18, 13}, {ElementType::Pyra14, 14},  {ElementType::Node, 15},    {ElementType::Quad8, 16},
        {ElementType::Hexa20, 17},  {ElementType::Penta15, 18}, {ElementType::Pyra13, 19}};
    return numbers.at(type);
}

std::string gmshFile(const SourceMesh &mesh, const GmshFileOptions &options) { return Writer(mesh, options).run(); }

} // namespace DNDS::Geom::test
