#include "cpu/host.h"

#include "cpu/fibers.h"
#include "cpu/sampling.h"

namespace spy::cpu {

const SpyHost& host_functions()
{
    static const SpyHost host = [] {
        SpyHost h{};
        h.run_group = fibers::run_group;
        h.group_sync = fibers::group_sync;
        h.wave_exchange = fibers::wave_exchange;
        h.wave_lane = fibers::wave_lane;
        h.load_texel = sampling::load_texel;
        h.store_texel = sampling::store_texel;
        h.find_texel = sampling::find_texel;
        h.sample = sampling::sample;
        return h;
    }();
    return host;
}

} // namespace spy::cpu
