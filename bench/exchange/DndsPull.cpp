#include "DndsPull.hpp"

#include "SetupMethod.hpp"

#include "DNDS/Array/ArrayPair.hpp"

namespace DNDS::Bench {

namespace {

using Rows = ParArray<real, DynamicSize>;
using Pair = ArrayPair<Rows>;

/// A pair whose father is that of others too; the mapping is made. Collective.
void attach(Pair &pair, CommunicatorView comm, const std::shared_ptr<Rows> &father,
            const std::vector<index> &pullList) {
    pair.initPair("u", comm);
    pair.father = father;
    pair.transAttach();
    pair.trans.createFatherGlobalMapping();
    pair.trans.createGhostMapping(pullList);
}

void bindPull(Pair &pair, TransportKind kind) {
    pair.trans.createMPITypes();
    pair.trans.initPersistentPull(ExchangeOptions{.transport = kind});
}

std::shared_ptr<Rows> makeFather(CommunicatorView comm, const Problem &problem, int width) {
    Pair pair;
    pair.initPair("u", comm);
    pair.father->resize(problem.owned(), width);
    return pair.father;
}

class DndsPull final : public PullMethod {
  public:
    DndsPull(CommunicatorView comm, const std::shared_ptr<Rows> &father, const std::vector<index> &pullList,
             TransportKind kind)
        : PullMethod(std::string(transportName(kind))) {
        attach(pair_, comm, father, pullList);
        bindPull(pair_, kind);
    }

    void pull() override {
        pair_.trans.startPersistentPull();
        pair_.trans.waitPersistentPull();
    }
    std::span<double> son() override { return {pair_.son->data(), static_cast<std::size_t>(pair_.son->dataSize())}; }

  private:
    Pair pair_;
};

} // namespace

struct Field::Impl {
    CommunicatorView comm;
    const Problem &problem;
    std::shared_ptr<Rows> father;
};

Field::Field(CommunicatorView comm, const Problem &problem, int width)
    : impl_(new Impl{comm, problem, makeFather(comm, problem, width)}) {}

Field::~Field() = default;

double *Field::father() { return impl_->father->data(); }

std::unique_ptr<PullMethod> Field::bind(TransportKind kind) {
    return std::make_unique<DndsPull>(impl_->comm, impl_->father, impl_->problem.pullList, kind);
}

std::vector<SetupMethod> dndsSetups(CommunicatorView comm, const Problem &problem, TransportKind kind, int width) {
    auto father = makeFather(comm, problem, width);
    auto pair = std::make_shared<std::unique_ptr<Pair>>();
    const auto makeMapping = [pair, comm, father, &problem] {
        *pair = std::make_unique<Pair>();
        attach(**pair, comm, father, problem.pullList);
    };
    const auto bind = [pair, makeMapping, kind] {
        makeMapping();
        bindPull(**pair, kind);
    };
    const auto release = [pair] { pair->reset(); };
    const std::string name(transportName(kind));
    std::vector<SetupMethod> methods;
    methods.push_back({name, "mapping", makeMapping, release});
    methods.push_back({name, "bound", bind, release});
    methods.push_back({name, "first_pull",
                       [pair, bind] {
                           bind();
                           (*pair)->trans.startPersistentPull();
                           (*pair)->trans.waitPersistentPull();
                       },
                       release});
    return methods;
}

} // namespace DNDS::Bench
