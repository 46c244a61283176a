#include "GhostMethod.hpp"

#include "DNDS/Blocks/BlockField.hpp"
#include "DNDS/Transport/TransportTypes.hpp"

namespace DNDS::Bench {

namespace {

class DndsBlocks final : public GhostMethod {
  public:
    DndsBlocks(const BlockCase &of, TransportKind kind)
        : GhostMethod(std::string(transportName(kind)), of), field_("u", of.comm(), of.pattern(), of.components()) {
        field_.initExchangeGhosts({.transport = kind});
    }
    void exchange() override { field_.exchangeGhosts(); }
    void rewrite(int round) override {
        if (of().doubles() > 0)
            of().rewrite(field_.array().view().data(), round);
    }
    void compare(int round) const override {
        if (of().doubles() > 0)
            of().compare(field_.array().view().data(), round, name());
    }

  private:
    BlockField<real> field_;
};

} // namespace

std::unique_ptr<GhostMethod> makeDnds(const BlockCase &of, TransportKind kind) {
    return std::make_unique<DndsBlocks>(of, kind);
}

} // namespace DNDS::Bench
