// Reads the kept corpus and thousands of damaged files, the same ones each time, with the ordinary compiler.
//
//   fuzz_replay [--scale FACTOR] [--corpus FOLDER] [--write-seeds FOLDER] [--only WORKLOAD] [FILE]...
//
// Files are read in a child process, which a crash or a hang ends without ending the test. Where one happens inside
// HDF5 or the CGNS library, whose containers random bytes damage, too, it is counted apart: nothing but another process
// could survive it. Everything else is a failure; the input is kept beside the program as fuzz_failure_<n>.

#include "fuzz/Mutations.hpp"
#include "fuzz/ReadBytes.hpp"
#include "fuzz/Seeds.hpp"

#include "DNDS/Mpi/Communicator.hpp"

#ifdef DNDS_FUZZ_CGNS
#include "DNDS/Geom/Generate/BoxMesh.hpp"
#include "fuzz/CgnsTree.hpp"
#endif
#ifdef DNDS_FUZZ_CHECKPOINTS
#include "fuzz/CheckpointBytes.hpp"
#endif

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include <csignal>
#include <dlfcn.h>
#include <execinfo.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define DNDS_FUZZ_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DNDS_FUZZ_ASAN
#endif
#endif

namespace DNDS::Geom::fuzz {
namespace {

constexpr int diedInLibrary = 77;
constexpr int notRefusedProperly = 78;
#ifdef DNDS_FUZZ_ASAN
constexpr unsigned secondsPerFile = 40;
#else
constexpr unsigned secondsPerFile = 10;
constexpr rlim_t maxMemory = rlim_t{3} << 30;
#endif

/// Messages of a live child to its parent.
struct Progress {
    std::size_t next;
    std::size_t read;
    std::size_t refused;
    std::array<char, 1024> message;
};

Progress &sharedProgress() {
    static void *const page =
        ::mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return *static_cast<Progress *>(page);
}

/// Whether one of the libraries that read containers is among the callers.
bool insideLibrary() {
    std::array<void *, 200> frames{};
    const int count = ::backtrace(frames.data(), static_cast<int>(frames.size()));
    for (int i = 0; i < count; i++) {
        Dl_info info{};
        if (::dladdr(frames[static_cast<std::size_t>(i)], &info) == 0 || info.dli_fname == nullptr)
            continue;
        if (std::strstr(info.dli_fname, "libhdf5") != nullptr || std::strstr(info.dli_fname, "libcgns") != nullptr)
            return true;
    }
    return false;
}

void onSignal(int signal) {
    ::signal(signal, SIG_DFL);
    if (insideLibrary())
        ::_exit(diedInLibrary);
    ::raise(signal);
}

void armChild() {
    // Loads what backtrace() needs before the heap may be damaged.
    insideLibrary();
    static std::array<char, 1 << 16> stack;
    const stack_t alternative{stack.data(), 0, stack.size()};
    ::sigaltstack(&alternative, nullptr);
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM}) {
        struct sigaction action {};
        action.sa_handler = onSignal;
        action.sa_flags = SA_ONSTACK | SA_NODEFER;
        ::sigaction(signal, &action, nullptr);
    }
#ifndef DNDS_FUZZ_ASAN
    const rlimit limit{maxMemory, maxMemory};
    ::setrlimit(RLIMIT_AS, &limit);
#endif
    const rlimit noCore{0, 0};
    ::setrlimit(RLIMIT_CORE, &noCore);
}

/// Inputs 0, 1, ... count - 1.
struct Workload {
    std::string name;
    std::size_t count;
    std::function<std::string(std::size_t)> make;
    bool container; ///< whether the bytes of a container are damaged, which its library may not survive
};

[[noreturn]] void runChild(const Workload &work, std::size_t begin) {
    armChild();
    Progress &progress = sharedProgress();
    for (std::size_t i = begin; i < work.count; i++) {
        progress.next = i;
        try {
            const std::string bytes = work.make(i);
            ::alarm(secondsPerFile);
            (readBytes(bytes).read ? progress.read : progress.refused)++;
            ::alarm(0);
        } catch (const std::exception &error) {
            std::snprintf(progress.message.data(), progress.message.size(), "%s", error.what());
            ::_exit(notRefusedProperly);
        }
    }
    progress.next = work.count;
    std::fflush(nullptr);
    ::_exit(0);
}

std::string describe(int status) {
    if (WIFSIGNALED(status))
        return WTERMSIG(status) == SIGALRM ? "no end" : ::strsignal(WTERMSIG(status));
    if (WEXITSTATUS(status) == notRefusedProperly)
        return sharedProgress().message.data();
    return "the process ended with code " + std::to_string(WEXITSTATUS(status));
}

/// Returns how many inputs failed.
int run(const Workload &work) {
    Progress &progress = sharedProgress();
    progress = {};
    int failures = 0;
    std::size_t inLibrary = 0;
    for (std::size_t begin = 0; begin < work.count && failures < 10;) {
        std::fflush(nullptr);
        // Without the handlers of fork(), by which the library knows children that had better leave MPI alone: these
        // use it with themselves only.
        const pid_t child = ::_Fork();
        if (child == 0)
            runChild(work, begin);
        int status = 0;
        ::waitpid(child, &status, 0);
        ::unlink(("/dev/shm/dnds_fuzz_" + std::to_string(child)).c_str());
        if (status == 0)
            break;
        begin = progress.next + 1;
        if (WIFEXITED(status) && WEXITSTATUS(status) == diedInLibrary && work.container) {
            inLibrary++;
            continue;
        }
        static int number = 0;
        const std::string path = "fuzz_failure_" + std::to_string(number++);
        const std::string bytes = work.make(progress.next);
        std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
        std::printf("FAILED: %s, input %zu, kept as %s: %s\n", work.name.c_str(), progress.next, path.c_str(),
                    describe(status).c_str());
        failures++;
    }
    std::printf("%-12s %5zu inputs: %5zu read, %5zu refused, %zu crashes inside the container's library\n",
                work.name.c_str(), work.count, progress.read, progress.refused, inLibrary);
    std::fflush(stdout);
    return failures;
}

std::string bytesOf(const std::filesystem::path &path) {
    std::ostringstream content;
    content << std::ifstream(path, std::ios::binary).rdbuf();
    return content.str();
}

std::vector<std::filesystem::path> filesIn(const std::filesystem::path &folder) {
    std::vector<std::filesystem::path> files;
    if (std::filesystem::is_directory(folder))
        for (const auto &entry : std::filesystem::recursive_directory_iterator(folder))
            if (entry.is_regular_file())
                files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
}

Workload filesWorkload(const std::string &name, std::vector<std::filesystem::path> files) {
    const std::size_t count = files.size();
    return {name, count, [files = std::move(files)](std::size_t i) { return bytesOf(files[i]); }, false};
}

Workload mutantsOf(const std::string &format, const std::vector<Seed> &all, std::size_t count) {
    std::vector<Seed> seeds;
    std::copy_if(all.begin(), all.end(), std::back_inserter(seeds),
                 [&](const Seed &seed) { return seed.format == format; });
    const bool container = format == "adf" || format == "hdf5";
    return {format, seeds.empty() ? 0 : count,
            [seeds, container](std::size_t i) {
                const Seed &seed = seeds[i % seeds.size()];
                if (i < seeds.size())
                    return seed.bytes;
                Random random(i);
                return mutate(seed.bytes, random.oneOf(seeds).bytes, container, random);
            },
            container};
}

#ifdef DNDS_FUZZ_CGNS
/// Sound containers of unsound trees: here the libraries have nothing to complain about.
Workload treesIn(test::FileType type, std::size_t count) {
    std::vector<CgnsNode> trees;
    for (const BoxCells fill : {BoxCells::MixedSurface, BoxCells::MixedVolume, BoxCells::Polyhedra}) {
        BoxMeshOptions options;
        options.fill = fill;
        options.cells = {fill == BoxCells::MixedVolume ? 4 : 2, 2, 1};
        options.periodic = {false, fill == BoxCells::MixedSurface, false};
        trees.push_back(cgnsTree(makeBoxMesh(options, 0, 1)));
    }
    return {type == test::FileType::Adf ? "adf trees" : "hdf5 trees", count,
            [trees, type](std::size_t i) {
                Random random(1000000 + i);
                CgnsNode tree = trees[i % trees.size()];
                mutate(tree, random);
                try {
                    return cgnsBytes(tree, type);
                } catch (const std::runtime_error &) { // two children of one name, say
                    return std::string();
                }
            },
            false};
}
#endif

#ifdef DNDS_FUZZ_CHECKPOINTS
/// Changes bytes and, in most files, repairs the checksums: HDF5 itself may not survive reading them.
Workload checkpointMutants(std::size_t count) {
    return {"checkpoint", count,
            [seed = soundCheckpoint()](std::size_t i) {
                Random random(2000000 + i);
                std::string bytes = seed;
                if (i % 3 == 1)
                    mutateAttribute(bytes, random);
                else if (i > 0)
                    bytes = mutate(seed, seed, true, random);
                if (random.below(4) != 0)
                    repairChecksums(bytes);
                return bytes;
            },
            true};
}

/// Files that HDF5 has nothing to complain about, of numbers and rows that contradict each other.
Workload checkpointParts(std::size_t count) {
    return {"parts", count,
            [parts = partsOf(soundCheckpoint())](std::size_t i) {
                Random random(3000000 + i);
                CheckpointParts changed = parts;
                if (i > 0)
                    mutate(changed, random);
                try {
                    return bytesOf(changed);
                } catch (const Error &) { // HDF5 does not write it
                    return std::string();
                }
            },
            false};
}
#endif

struct Options {
    double scale = 1.0;
    std::string corpus;
    std::string seeds;
    std::string only;
    std::vector<std::filesystem::path> files;
};

Options parse(int argc, char **argv) {
    Options options;
    for (int i = 1; i < argc; i++) {
        const std::string word = argv[i];
        const auto value = [&] { return i + 1 < argc ? std::string(argv[++i]) : std::string(); };
        if (word == "--scale")
            options.scale = std::stod(value());
        else if (word == "--corpus")
            options.corpus = value();
        else if (word == "--write-seeds")
            options.seeds = value();
        else if (word == "--only")
            options.only = value();
        else
            options.files.emplace_back(word);
    }
    return options;
}

int main(const Options &options) {
    const std::vector<Seed> seeds = makeSeeds();
    if (!options.seeds.empty()) {
        for (const Seed &seed : seeds) {
            const auto folder = std::filesystem::path(options.seeds) / seed.format;
            std::filesystem::create_directories(folder);
            std::ofstream(folder / seed.name, std::ios::binary)
                .write(seed.bytes.data(), static_cast<std::streamsize>(seed.bytes.size()));
        }
        return 0;
    }
    const auto scaled = [&](double count) { return static_cast<std::size_t>(count * options.scale); };
    std::vector<Workload> workloads;
    if (!options.files.empty()) {
        workloads = {filesWorkload("files", options.files)};
    } else {
        workloads = {filesWorkload("corpus", filesIn(options.corpus)),
                     mutantsOf("gmsh", seeds, scaled(4000)),
                     mutantsOf("su2", seeds, scaled(1500)),
                     mutantsOf("ugrid", seeds, scaled(1500)),
                     mutantsOf("vtu", seeds, scaled(3000)),
                     mutantsOf("adf", seeds, scaled(600)),
                     mutantsOf("hdf5", seeds, scaled(600))};
#ifdef DNDS_FUZZ_VTKHDF
        workloads.push_back(mutantsOf("vtkhdf", seeds, scaled(600)));
#endif
#ifdef DNDS_FUZZ_CGNS
        workloads.push_back(treesIn(test::FileType::Adf, scaled(1000)));
        workloads.push_back(treesIn(test::FileType::Hdf5, scaled(1000)));
#endif
#ifdef DNDS_FUZZ_CHECKPOINTS
        workloads.push_back(checkpointMutants(scaled(1500)));
        workloads.push_back(checkpointParts(scaled(1500)));
#endif
    }
    int failures = 0;
    for (const Workload &work : workloads)
        if (options.only.empty() || work.name == options.only)
            failures += run(work);
    return failures == 0 ? 0 : 1;
}

} // namespace
} // namespace DNDS::Geom::fuzz

#ifdef DNDS_FUZZ_ASAN
extern "C" {
const char *__asan_default_options() { return "allocator_may_return_null=1:max_allocation_size_mb=2048"; }
void __asan_on_error() {
    if (DNDS::Geom::fuzz::insideLibrary())
        ::_exit(DNDS::Geom::fuzz::diedInLibrary);
}
}
#endif

int main(int argc, char **argv) {
    const DNDS::MpiSession mpi(argc, argv);
    return DNDS::Geom::fuzz::main(DNDS::Geom::fuzz::parse(argc, argv));
}
