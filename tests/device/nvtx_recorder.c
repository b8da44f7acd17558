/* A tool as NVTX loads it: writes the ranges of every domain to the file named by NVTX_RECORD. */
#include <stdio.h>
#include <stdlib.h>
#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>

static FILE* record;

static nvtxDomainHandle_t create(const char* name)
{
    fprintf(record, "domain %s\n", name);
    fflush(record);
    return (nvtxDomainHandle_t)record;
}

static int push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes)
{
    (void)domain;
    fprintf(record, "push %s\n", attributes->messageType == NVTX_MESSAGE_TYPE_ASCII ? attributes->message.ascii : "?");
    fflush(record);
    return 0;
}

static int pop(nvtxDomainHandle_t domain)
{
    (void)domain;
    fprintf(record, "pop\n");
    fflush(record);
    return 0;
}

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_export_table)
{
    const NvtxExportTableCallbacks* callbacks = get_export_table(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable table;
    unsigned size = 0;
    record = fopen(getenv("NVTX_RECORD"), "w");
    if (!record || !callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size))
        return 0;
    *table[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)create;
    *table[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)push;
    *table[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)pop;
    return 1;
}
