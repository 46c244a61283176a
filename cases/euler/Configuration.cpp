#include "Configuration.hpp"

#include "Settings.hpp"

#include <filesystem>
#include <fstream>
#include <numbers>
#include <sstream>

namespace Euler {

namespace {

namespace Geom = DNDS::Geom;
using DNDS::ArgumentError;
using nlohmann::json;

/// A list of two or three numbers.
Vector vectorOf(Settings &settings, const std::string &key) {
    const auto list = settings.need<std::vector<real>>(key);
    DNDS_CHECK(list.size() == 2 || list.size() == 3, ArgumentError, "{} must have two or three numbers",
               settings.pathOf(key));
    return {list[0], list[1], list.size() == 3 ? list[2] : 0};
}

Primitive primitiveOf(Settings settings) {
    Primitive w;
    w.density = settings.positive("density");
    w.velocity = vectorOf(settings, "velocity");
    w.pressure = settings.positive("pressure");
    settings.finish();
    return w;
}

/// Reads how a side goes; only the floor can have a step.
void readSide(Settings settings, Geom::BoxRamp &ramp, Geom::BoxStep *step) {
    enum class Kind : unsigned char { Flat, Ramp, Step };
    std::vector<std::pair<std::string, Kind>> words{{"flat", Kind::Flat}, {"ramp", Kind::Ramp}};
    if (step != nullptr)
        words.emplace_back("step", Kind::Step);
    const Kind kind = settings.choice(std::string("kind"), words, Kind::Flat);
    if (kind == Kind::Ramp)
        ramp = {settings.need<real>("start"), settings.need<real>("angle")};
    else if (kind == Kind::Step)
        *step = {settings.need<real>("start"), settings.positive("height")};
    settings.finish();
}

Geom::BoxMeshOptions boxOf(Settings settings) {
    Geom::BoxMeshOptions box;
    box.fill = Geom::boxCellsOf(settings.get<std::string>("fill", "tetrahedra"));
    const auto cells = settings.get<std::vector<index>>("cells", {8, 8, 8});
    const auto lengths = settings.get<std::vector<real>>("lengths", {1, 1, 1});
    DNDS_CHECK(cells.size() >= 2 && cells.size() <= 3 && lengths.size() >= 2 && lengths.size() <= 3, ArgumentError,
               "{} and {} must have two or three numbers", settings.pathOf("cells"), settings.pathOf("lengths"));
    std::copy(cells.begin(), cells.end(), box.cells.begin());
    std::copy(lengths.begin(), lengths.end(), box.lengths.begin());
    for (const std::string &direction : settings.get<std::vector<std::string>>("periodic", {})) {
        DNDS_CHECK(direction == "x" || direction == "y" || direction == "z", ArgumentError,
                   "{} lists '{}'; there are: x, y, z", settings.pathOf("periodic"), direction);
        box.periodic[static_cast<std::size_t>(direction[0] - 'x')] = true;
    }
    box.jitter = settings.get<real>("jitter", 0);
    box.shuffled = settings.get<bool>("shuffled", false);
    readSide(settings.object("floor"), box.floor, &box.step);
    readSide(settings.object("ceiling"), box.ceiling, nullptr);
    settings.finish();
    return box;
}

MeshChoice meshOf(Settings settings, const std::filesystem::path &folder) {
    MeshChoice mesh;
    const bool file = settings.has("file");
    DNDS_CHECK(file != settings.has("box"), ArgumentError, "mesh needs either a file or a box");
    if (file)
        mesh.file = (folder / settings.need<std::string>("file")).string();
    else
        mesh.box = boxOf(settings.object("box"));
    mesh.cgns.base = settings.get<std::string>("base", "");
    mesh.cgns.joinCoincidentNodes = settings.get<bool>("join", false);
    mesh.curve = settings.choice<bool>("partitioner", {{"graph", false}, {"curve", true}}, false);
    settings.finish();
    return mesh;
}

Reference referenceOf(Settings settings, const Gas &gas, real gasConstant) {
    Reference reference;
    reference.state.pressure = settings.positive("pressure");
    DNDS_CHECK(settings.has("temperature") != settings.has("density"), ArgumentError,
               "reference needs either a temperature or a density");
    reference.state.density = settings.has("density")
                                  ? settings.positive("density")
                                  : reference.state.pressure / (gasConstant * settings.positive("temperature"));
    const real angle = settings.get<real>("angleOfAttack", 0) * std::numbers::pi / 180;
    reference.drag = {std::cos(angle), std::sin(angle), 0};
    reference.lift = {-std::sin(angle), std::cos(angle), 0};
    const real mach = settings.need<real>("mach");
    reference.state.velocity = (mach * gas.soundSpeed(reference.state)) * reference.drag;
    reference.length = settings.positive("length", 1);
    reference.area = settings.positive("area", 1);
    settings.finish();
    return reference;
}

InitialFlow initialOf(Settings settings, const Reference &reference, const std::optional<Geom::BoxMeshOptions> &box) {
    enum class Kind { Reference, Vortex, ShockTube };
    const auto kind = settings.choice<Kind>(
        "kind", {{"reference", Kind::Reference}, {"vortex", Kind::Vortex}, {"shock tube", Kind::ShockTube}},
        Kind::Reference);
    InitialFlow flow;
    if (kind == Kind::Vortex) {
        Vortex vortex;
        vortex.around = reference.state;
        vortex.centre = vectorOf(settings, "centre");
        vortex.strength = settings.get<real>("strength", 5);
        vortex.radius = settings.positive("radius", 1);
        if (box)
            vortex.period = {box->periodic[0] ? box->lengths[0] : 0, box->periodic[1] ? box->lengths[1] : 0, 0};
        flow = vortex;
    } else if (kind == Kind::ShockTube) {
        ShockTube tube;
        tube.position = settings.need<real>("position");
        tube.left = primitiveOf(settings.object("left"));
        tube.right = primitiveOf(settings.object("right"));
        flow = tube;
    }
    settings.finish();
    return flow;
}

const std::vector<std::pair<std::string, BoundaryKind>> boundaryWords{
    {"wall", BoundaryKind::Wall},
    {"symmetry", BoundaryKind::Symmetry},
    {"far field", BoundaryKind::FarField},
    {"supersonic inflow", BoundaryKind::SupersonicInflow},
    {"supersonic outflow", BoundaryKind::SupersonicOutflow},
    {"pressure outlet", BoundaryKind::PressureOutlet}};

BoundaryCondition boundaryOf(const json &value, const std::string &path, const Reference &reference,
                             Settings::Choices &choices) {
    // A word stands for an object with nothing but this kind.
    const json object = value.is_string() ? json{{"kind", value}} : value;
    Settings settings(object, path, &choices);
    BoundaryCondition condition;
    condition.kind = settings.choice("kind", boundaryWords);
    condition.outside = reference.state;
    if (condition.kind == BoundaryKind::SupersonicInflow && settings.has("state"))
        condition.outside = primitiveOf(settings.object("state"));
    if (condition.kind == BoundaryKind::PressureOutlet)
        condition.outside.pressure = settings.positive("pressure", reference.state.pressure);
    settings.finish();
    return condition;
}

Scheme schemeOf(Settings settings, const Gas &gas, const Reference &reference) {
    Scheme scheme;
    scheme.flux =
        settings.choice<FluxScheme>("flux", {{"hllc", FluxScheme::Hllc}, {"roe", FluxScheme::Roe}}, FluxScheme::Hllc);
    scheme.entropyFix = settings.positive("entropyFix", scheme.entropyFix);
    scheme.gradient = settings.choice<GradientScheme>(
        "gradient", {{"least-squares", GradientScheme::LeastSquares}, {"green-gauss", GradientScheme::GreenGauss}},
        GradientScheme::LeastSquares);
    scheme.limiter.limiter = settings.choice<Limiter>("limiter",
                                                      {{"venkatakrishnan", Limiter::Venkatakrishnan},
                                                       {"barth-jespersen", Limiter::BarthJespersen},
                                                       {"none", Limiter::None}},
                                                      Limiter::Venkatakrishnan);
    scheme.limiter.constant = settings.positive("limiterConstant", scheme.limiter.constant);
    scheme.limiter.length = reference.length;
    const real sound = gas.soundSpeed(reference.state);
    const std::array<real, variables> scales{reference.state.density, sound, sound, sound, reference.state.pressure};
    std::copy(scales.begin(), scales.end(), scheme.limiter.scales);
    scheme.time = settings.choice<TimeScheme>(
        "timeStepping", {{"ssp-rk2", TimeScheme::SspRk2}, {"ssp-rk3", TimeScheme::SspRk3}}, TimeScheme::SspRk3);
    scheme.overlap = settings.get<bool>("overlap", true);
    scheme.threads = std::max(1, static_cast<int>(settings.count("threads", 1)));
    scheme.reproducible = settings.get<bool>("reproducible", true);
    scheme.device = settings.choice<bool>("device", {{"host", false}, {"cuda", true}}, false);
    scheme.graphs = settings.get<bool>("graphs", true);
    settings.finish();
    return scheme;
}

TimeChoice timeOf(Settings settings) {
    TimeChoice time;
    time.steady = settings.choice<bool>("mode", {{"steady", true}, {"unsteady", false}});
    time.cfl = settings.positive("cfl", time.cfl);
    const char *other = time.steady ? "end" : "tolerance";
    DNDS_CHECK(!settings.has(other), ArgumentError, "{} has no meaning in this mode", settings.pathOf(other));
    if (time.steady)
        time.tolerance = settings.get<real>("tolerance", 0);
    else
        time.end = settings.positive("end", time.end);
    time.steps = settings.count("steps", time.steady || !std::isfinite(time.end) ? 0 : std::numeric_limits<int>::max());
    DNDS_CHECK(time.steps > 0, ArgumentError, "{} must be given, and positive", settings.pathOf("steps"));
    settings.finish();
    return time;
}

ImplicitChoice implicitOf(Settings settings) {
    ImplicitChoice choice;
    const auto within = [&](const char *key, real value, bool fits, const char *what) {
        DNDS_CHECK(fits, ArgumentError, "{} is {}: it must be {}", settings.pathOf(key), value, what);
        return value;
    };
    choice.cfl = settings.positive("cfl", choice.cfl);
    choice.growth = settings.get<real>("growth", choice.growth);
    within("growth", choice.growth, choice.growth >= 1, "at least 1");
    choice.cflMost = settings.get<real>("cflMost", std::max(choice.cfl, choice.cflMost));
    within("cflMost", choice.cflMost, choice.cflMost >= choice.cfl, "at least that of the first step, implicit.cfl");
    choice.krylovTolerance = settings.positive("krylovTolerance", choice.krylovTolerance);
    within("krylovTolerance", choice.krylovTolerance, choice.krylovTolerance < 1, "less than 1");
    const auto count = [&](const char *key, int otherwise) {
        const index value = settings.count(key, otherwise);
        within(key, static_cast<real>(value), value >= 1 && value <= 1000, "from 1 to 1000");
        return static_cast<int>(value);
    };
    choice.krylovIterations = count("krylovIterations", choice.krylovIterations);
    choice.sweeps = count("sweeps", choice.sweeps);
    choice.newtonBelow = settings.get<real>("newtonBelow", choice.newtonBelow);
    within("newtonBelow", choice.newtonBelow, choice.newtonBelow >= 0, "at least 0");
    settings.finish();
    return choice;
}

HotRegion hotRegionOf(Settings settings) {
    HotRegion region;
    region.centre = vectorOf(settings, "centre");
    if (settings.has("velocity"))
        region.velocity = vectorOf(settings, "velocity");
    region.radius = settings.positive("radius");
    region.substeps = std::max<index>(1, settings.count("substeps", region.substeps));
    settings.finish();
    return region;
}

BalanceChoice balanceOf(Settings settings) {
    BalanceChoice balance;
    balance.threshold = settings.get<real>("threshold", balance.threshold);
    DNDS_CHECK(balance.threshold >= 0, ArgumentError, "{} is {}: it must not be negative", settings.pathOf("threshold"),
               balance.threshold);
    balance.graph = settings.choice<bool>("partitioner", {{"graph", true}, {"curve", false}}, false);
    settings.finish();
    return balance;
}

const std::vector<std::pair<std::string, PictureField>> pictureFields{{"density", PictureField::Density},
                                                                      {"pressure", PictureField::Pressure},
                                                                      {"mach", PictureField::Mach},
                                                                      {"speed", PictureField::Speed}};

/// A list of ascending pairs.
template <std::size_t size>
std::optional<std::array<real, size>> intervals(Settings &settings, const char *key) {
    if (!settings.has(key))
        return {};
    const auto list = settings.need<std::vector<real>>(key);
    bool ascending = list.size() == size;
    for (std::size_t i = 0; ascending && i < size; i += 2)
        ascending = list[i] < list[i + 1];
    DNDS_CHECK(ascending, ArgumentError, "{} must be {} numbers: a low and a higher one for each interval",
               settings.pathOf(key), size);
    std::array<real, size> all{};
    std::copy(list.begin(), list.end(), all.begin());
    return all;
}

PictureChoice pictureOf(Settings settings) {
    PictureChoice picture;
    picture.every = settings.count("every", 0);
    DNDS_CHECK(picture.every > 0, ArgumentError, "{} must be given, and positive", settings.pathOf("every"));
    picture.field = settings.choice<PictureField>("field", pictureFields, picture.field);
    picture.range = intervals<2>(settings, "range");
    picture.window = intervals<4>(settings, "window");
    picture.normal = settings.choice<int>("normal", {{"x", 0}, {"y", 1}, {"z", 2}}, picture.normal);
    if (settings.has("at"))
        picture.at = settings.need<real>("at");
    const index width = settings.count("width", picture.width);
    DNDS_CHECK(width >= 16 && width <= 4096, ArgumentError, "{} is {}: give 16 to 4096 pixels",
               settings.pathOf("width"), width);
    picture.width = static_cast<std::uint32_t>(width);
    settings.finish();
    return picture;
}

OutputChoice outputOf(Settings settings) {
    OutputChoice output;
    output.folder = settings.get<std::string>("folder", output.folder);
    output.historyEvery = std::max<index>(1, settings.count("historyEvery", output.historyEvery));
    output.fields = settings.get<bool>("fields", true);
    output.fieldsEvery = settings.count("fieldsEvery", 0);
    output.checkpointEvery = settings.count("checkpointEvery", 0);
    output.checkpointMinutes = settings.get<real>("checkpointMinutes", 0);
    DNDS_CHECK(output.checkpointMinutes >= 0, ArgumentError, "{} is {}: it must not be negative",
               settings.pathOf("checkpointMinutes"), output.checkpointMinutes);
    output.keep = settings.count("keep", output.keep);
    DNDS_CHECK(output.keep > 0, ArgumentError, "{} is 0: the last checkpoint must be kept", settings.pathOf("keep"));
    output.forces = settings.get<std::vector<std::string>>("forces", {});
    if (settings.has("picture")) {
        output.picture = pictureOf(settings.object("picture"));
        DNDS_CHECK(!output.folder.empty(), ArgumentError, "{} needs a folder: {} is empty", settings.pathOf("picture"),
                   settings.pathOf("folder"));
    }
    settings.finish();
    return output;
}

/// Sets "key.key=value" in the file's content; a value that is not JSON is a text.
void change(json &content, const std::string &assignment) {
    const auto equals = assignment.find('=');
    DNDS_CHECK(equals != std::string::npos && equals > 0, ArgumentError, "'{}' is not key=value", assignment);
    json *place = &content;
    std::istringstream keys(assignment.substr(0, equals));
    for (std::string key; std::getline(keys, key, '.');) {
        DNDS_CHECK(place->is_object() || place->is_null(), ArgumentError, "'{}': {} is not in an object", assignment,
                   key);
        place = &(*place)[key];
    }
    const std::string text = assignment.substr(equals + 1);
    const json value = json::parse(text, nullptr, false);
    *place = value.is_discarded() ? json(text) : value;
}

/// Throws for settings that implicit steps do not take.
void checkImplicit(const Configuration &configuration, const json &content) {
    const auto given = [&](const char *object, const char *key) {
        return content.contains(object) && content.at(object).contains(key);
    };
    DNDS_CHECK(configuration.time.steady, ArgumentError,
               "implicit needs time.mode 'steady': remove implicit from a time-accurate run");
    DNDS_CHECK(!configuration.scheme.device, ArgumentError,
               "implicit steps are computed on the host: set scheme.device to host, or remove implicit");
    DNDS_CHECK(!configuration.kinetics, ArgumentError,
               "kinetics are advanced by explicit steps only: remove kinetics or implicit");
    DNDS_CHECK(!configuration.balance, ArgumentError,
               "balance measures explicit steps only: remove balance or implicit");
    DNDS_CHECK(!given("time", "cfl"), ArgumentError, "time.cfl is of explicit steps: set implicit.cfl instead");
    DNDS_CHECK(!given("scheme", "timeStepping"), ArgumentError,
               "scheme.timeStepping is of explicit steps: remove it, or implicit");
}

Configuration configurationOf(const json &content, const std::string &path) {
    Configuration configuration;
    configuration.path = path;
    Settings settings(content, "", &configuration.choices);
    if (settings.has("$schema"))
        (void)settings.need<std::string>("$schema");
    configuration.mesh = meshOf(settings.object("mesh"), std::filesystem::path(path).parent_path());
    Settings gas = settings.object("gas");
    configuration.gas.gamma = gas.positive("gamma", 1.4);
    DNDS_CHECK(configuration.gas.gamma > 1, ArgumentError, "gas.gamma must be greater than 1");
    const real gasConstant = gas.positive("gasConstant", 287.058);
    gas.finish();
    configuration.reference = referenceOf(settings.object("reference"), configuration.gas, gasConstant);
    configuration.initial = initialOf(settings.object("initial"), configuration.reference, configuration.mesh.box);
    if (settings.has("boundaries")) {
        const json &boundaries = settings.value("boundaries");
        DNDS_CHECK(boundaries.is_object(), ArgumentError, "boundaries must be an object");
        for (const auto &item : boundaries.items())
            configuration.boundaries[item.key()] =
                boundaryOf(item.value(), "boundaries." + item.key(), configuration.reference, configuration.choices);
    }
    configuration.scheme = schemeOf(settings.object("scheme"), configuration.gas, configuration.reference);
    configuration.time = timeOf(settings.object("time"));
    if (settings.has("implicit"))
        configuration.implicit = implicitOf(settings.object("implicit"));
    if (settings.has("kinetics"))
        configuration.kinetics = hotRegionOf(settings.object("kinetics"));
    if (settings.has("balance"))
        configuration.balance = balanceOf(settings.object("balance"));
    configuration.output = outputOf(settings.object("output"));
    settings.finish();
    if (configuration.implicit)
        checkImplicit(configuration, content);
    return configuration;
}

/// The names of a mesh's patches, with the number of faces on all ranks, which may be 0.
std::vector<index> countFaces(const Geom::UnstructuredMesh &mesh) {
    std::vector<index> counts(mesh.patches.size(), 0);
    const auto faceCells = mesh.faceCells.view();
    for (index face = 0; face < mesh.faces.owned; face++)
        if (faceCells(face, 1) == Geom::noEntity)
            counts[static_cast<std::size_t>(mesh.facePatches(face))]++;
    mesh.comm.allReduce(counts.data(), static_cast<int>(counts.size()), MPI_SUM);
    return counts;
}

std::string namesOf(const Geom::UnstructuredMesh &mesh) {
    std::string names;
    for (const Geom::MeshPatch &patch : mesh.patches)
        names += (names.empty() ? "" : ", ") + patch.name;
    return names;
}

int patchOf(const Geom::UnstructuredMesh &mesh, const std::string &name, const char *where) {
    for (std::size_t p = 0; p < mesh.patches.size(); p++)
        if (mesh.patches[p].name == name)
            return static_cast<int>(p);
    throw ArgumentError(fmt::format("{}: '{}' of {} is not a patch of the mesh, which has: {}", mesh.origin, name,
                                    where, namesOf(mesh)));
}

} // namespace

std::string pictureFieldName(PictureField field) {
    return std::find_if(pictureFields.begin(), pictureFields.end(),
                        [&](const auto &one) { return one.second == field; })
        ->first;
}

Configuration parseConfiguration(const std::string &text, const std::string &path,
                                 const std::vector<std::string> &changes) {
    try {
        json content = json::parse(text, nullptr, true, true);
        for (const std::string &assignment : changes)
            change(content, assignment);
        return configurationOf(content, path);
    } catch (const json::exception &error) {
        throw ArgumentError(fmt::format("{}: {}", path, error.what()));
    } catch (const DNDS::Error &error) {
        throw ArgumentError(fmt::format("{}: {}", path, error.message()));
    }
}

Configuration readConfiguration(DNDS::CommunicatorView comm, const std::string &path,
                                const std::vector<std::string> &changes) {
    Configuration configuration;
    comm.guarded([&] {
        std::ifstream file(path);
        std::ostringstream text;
        text << file.rdbuf();
        DNDS_CHECK(file.good(), ArgumentError, "{} cannot be read", path);
        configuration = parseConfiguration(text.str(), path, changes);
    });
    return configuration;
}

Primitive flowAt(const Configuration &configuration, Vector point, real time) {
    if (const auto *vortex = std::get_if<Vortex>(&configuration.initial))
        return vortex->at(configuration.gas, point, time);
    if (const auto *tube = std::get_if<ShockTube>(&configuration.initial))
        return tube->at(configuration.gas, point, time);
    return configuration.reference.state;
}

std::vector<BoundaryCondition> conditionsOf(const Geom::UnstructuredMesh &mesh,
                                            const std::map<std::string, BoundaryCondition> &boundaries) {
    const std::vector<index> counts = countFaces(mesh);
    std::vector<BoundaryCondition> conditions(mesh.patches.size());
    for (const auto &[name, condition] : boundaries)
        conditions[static_cast<std::size_t>(patchOf(mesh, name, "boundaries"))] = condition;
    for (std::size_t p = 0; p < mesh.patches.size(); p++)
        DNDS_CHECK(counts[p] == 0 || boundaries.contains(mesh.patches[p].name), ArgumentError,
                   "{}: boundaries lacks the patch '{}' with {} faces; the mesh has: {}", mesh.origin,
                   mesh.patches[p].name, counts[p], namesOf(mesh));
    return conditions;
}

std::vector<int> forcePatches(const Geom::UnstructuredMesh &mesh, const Configuration &configuration) {
    std::vector<int> patches;
    for (const std::string &name : configuration.output.forces) {
        patches.push_back(patchOf(mesh, name, "output.forces"));
        const auto found = configuration.boundaries.find(name);
        DNDS_CHECK(found == configuration.boundaries.end() || found->second.kind == BoundaryKind::Wall ||
                       found->second.kind == BoundaryKind::Symmetry,
                   ArgumentError,
                   "'{}' of output.forces is neither a wall nor a symmetry: its momentum flux is no force", name);
    }
    if (patches.empty())
        for (const auto &[name, condition] : configuration.boundaries)
            if (condition.kind == BoundaryKind::Wall)
                patches.push_back(patchOf(mesh, name, "boundaries"));
    return patches;
}

} // namespace Euler
