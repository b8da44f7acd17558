#pragma once
// One life of a session as the process that generates code knows it: which of its modules were sent there, under which
// numbers. Modules go there serialised; sources and reflection stay here. Used on the compiler's thread.
#include "slang/isolation/worker.h"

namespace spy {

/// A question for CodeWorker::ask().
struct CodeRequest {
    uint64_t life = 0; ///< 0: there is nobody to ask
    std::string frame;
};

class RemoteSession {
public:
    RemoteSession(SlangTarget target, SessionOptions options);
    ~RemoteSession();

    /// Starts the process, where there is none, and sends it the session: it then gets ready beside the front end.
    void open();
    /// `module` came of these bytes, which need not be made again.
    void loaded(slang::IModule* module, ComPtr<ISlangBlob> blob);

    /// A question, unless the code is better made here: Slang dies in derivatives, and in comparisons of matrices; what
    /// has none need not wait for a process to get ready.
    CodeRequest request(const SessionState& state, const ProgramData& program, int entry_point,
                        const std::string& fault);
    /// Hash of all that decides the code: the same in every process.
    std::string content_key(const SessionState& state, const ProgramData& program, int entry_point);

private:
    struct Sent {
        std::string hash;        ///< made when it is asked for
        ComPtr<ISlangBlob> blob; ///< kept where it was there anyway
        uint64_t number = 0;     ///< 0: not sent in this life
    };

    SlangTarget m_target;
    SessionOptions m_options;
    uint64_t m_id = 0, m_life = 0, m_last_number = 0;
    std::unordered_map<slang::IModule*, Sent> m_modules;

    bool join(CodeWorker& worker);
    void send(CodeWorker& worker, slang::IModule* module, Sent& sent, ISlangBlob* blob);
    static ComPtr<ISlangBlob> serialized(const SessionState& state, slang::IModule* module, const Sent& sent);
};

} // namespace spy
