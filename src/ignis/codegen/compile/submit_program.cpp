#include "ignis/base/submit_program.h"

#include "ignis/codegen/codegen.h"
#include "ignis/codegen/compile/llvm_compile.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <cstddef>
#include <memory>

namespace ignis::codegen {
namespace {

using llvm::Value;

/// Writes the one function of a submit program. Every store is exactly as wide as its word and may lie at any byte.
class SubmitRenderer {
 public:
  SubmitRenderer(llvm::LLVMContext& context, const std::string& name)
      : module_(std::make_unique<llvm::Module>(name, context)), b_(context) {
    llvm::Type* const i64 = b_.getInt64Ty();
    auto* const type = llvm::FunctionType::get(b_.getVoidTy(), {b_.getPtrTy(), i64, i64}, false);
    function_ =
        llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name, module_.get());
    function_->setDSOLocal(true);
    function_->addFnAttr(llvm::Attribute::NoUnwind);
    function_->addFnAttr("no-builtins");
    function_->addFnAttr("frame-pointer", "none");
    b_.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", function_));
    values_ = buffer(SubmitBuffer::Values);
  }

  std::unique_ptr<llvm::Module> render(const SubmitCode& code) {
    bool has_remote = false;
    for (const WordStore& store : code.stores) has_remote |= store.is_remote;
    if (has_remote || code.kinds >> 4 != 0) open_remote();
    if (!code.stores.empty()) render_stores(code.stores);
    if (code.kinds != 0) render_loops(code.kinds);
    b_.CreateRetVoid();
    return std::move(module_);
  }

 private:
  Value* load_at(llvm::Type* type, Value* base, uint64_t offset_bytes) {
    return b_.CreateLoad(type, b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), base, offset_bytes));
  }
  Value* buffer(SubmitBuffer which) {
    return load_at(b_.getPtrTy(), function_->getArg(0), 8 * static_cast<uint64_t>(which));
  }

  void open_remote() {
    Value* const remote = buffer(SubmitBuffer::Remote);
    remote_store_ = load_at(b_.getPtrTy(), remote, offsetof(RemoteStores, store));
    remote_context_ = load_at(b_.getPtrTy(), remote, offsetof(RemoteStores, context));
  }

  void store_remote(Value* words, Value* offset_bytes, Value* value, uint64_t width_bytes) {
    llvm::Type* const i64 = b_.getInt64Ty();
    auto* const type =
        llvm::FunctionType::get(b_.getVoidTy(), {b_.getPtrTy(), i64, i64, i64, i64}, false);
    b_.CreateCall(type, remote_store_,
                  {remote_context_, words, offset_bytes, value, b_.getInt64(width_bytes)});
  }
  void store_local(Value* address, Value* value, uint64_t width_bytes) {
    llvm::Type* const type = b_.getIntNTy(static_cast<unsigned>(8 * width_bytes));
    b_.CreateAlignedStore(b_.CreateTrunc(value, type), address, llvm::Align(1));
  }

  /// In the order given: a block and a value that follow themselves are loaded once.
  void render_stores(const std::vector<WordStore>& stores) {
    Value* const words = buffer(SubmitBuffer::Words);
    const WordStore* last = nullptr;
    Value* place = nullptr;
    Value* loaded = nullptr;
    Value* sum = nullptr;
    for (const WordStore& store : stores) {
      const bool same_block = last != nullptr && last->words == store.words;
      const bool same_value = same_block && last->value == store.value;
      if (!same_block && !store.is_remote) {
        place = load_at(b_.getPtrTy(), words, uint64_t{8} * store.words);
      }
      if (!same_value) loaded = load_at(b_.getInt64Ty(), values_, uint64_t{8} * store.value);
      if (!same_value || last->addend != store.addend) {
        sum = store.addend == 0
                  ? loaded
                  : b_.CreateAdd(loaded, b_.getInt64(static_cast<uint64_t>(store.addend)));
      }
      if (store.is_remote) {
        store_remote(b_.getInt64(store.words), b_.getInt64(store.offset_bytes), sum,
                     store.width_bytes);
      } else {
        store_local(b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), place, store.offset_bytes), sum,
                    store.width_bytes);
      }
      last = &store;
    }
  }

  void render_loops(uint8_t kinds) {
    Value* const table = buffer(SubmitBuffer::Table);
    Value* const rows = load_at(b_.getPtrTy(), table, offsetof(StoreTable, rows));
    Value* begin = b_.getInt64(0);
    for (int kind = 0; kind < kStoreKinds; ++kind) {
      if ((kinds >> kind & 1) == 0) continue;
      Value* const end =
          load_at(b_.getInt64Ty(), table,
                  offsetof(StoreTable, end) + sizeof(uint64_t) * static_cast<uint64_t>(kind));
      render_loop(kind, rows, begin, end);
      begin = end;
    }
  }

  void render_loop(int kind, Value* rows, Value* begin, Value* end) {
    llvm::LLVMContext& context = module_->getContext();
    llvm::BasicBlock* const before = b_.GetInsertBlock();
    llvm::BasicBlock* const loop = llvm::BasicBlock::Create(context, "loop", function_);
    llvm::BasicBlock* const done = llvm::BasicBlock::Create(context, "done", function_);
    b_.CreateCondBr(b_.CreateICmpULT(begin, end), loop, done);
    b_.SetInsertPoint(loop);
    llvm::PHINode* const i = b_.CreatePHI(b_.getInt64Ty(), 2, "i");
    i->addIncoming(begin, before);
    Value* const row = b_.CreateInBoundsGEP(b_.getInt8Ty(), rows,
                                            b_.CreateMul(i, b_.getInt64(sizeof(StoreRow))), "row");
    Value* const place = load_at(b_.getInt64Ty(), row, offsetof(StoreRow, place));
    Value* const number = load_at(b_.getInt64Ty(), row, offsetof(StoreRow, value));
    Value* const addend = load_at(b_.getInt64Ty(), row, offsetof(StoreRow, addend));
    Value* const value =
        b_.CreateLoad(b_.getInt64Ty(), b_.CreateInBoundsGEP(b_.getInt64Ty(), values_, number));
    Value* const sum = b_.CreateAdd(value, addend);
    const uint64_t width_bytes = uint64_t{1} << (kind % 4);
    if (kind >= 4) {
      store_remote(b_.CreateLShr(place, 32), b_.CreateAnd(place, b_.getInt64(0xFFFF'FFFF)), sum,
                   width_bytes);
    } else {
      store_local(b_.CreateIntToPtr(place, b_.getPtrTy()), sum, width_bytes);
    }
    Value* const next = b_.CreateAdd(i, b_.getInt64(1));
    i->addIncoming(next, b_.GetInsertBlock());
    b_.CreateCondBr(b_.CreateICmpULT(next, end), loop, done);
    b_.SetInsertPoint(done);
  }

  std::unique_ptr<llvm::Module> module_;
  llvm::IRBuilder<> b_;
  llvm::Function* function_ = nullptr;
  Value* values_ = nullptr;
  Value* remote_store_ = nullptr;
  Value* remote_context_ = nullptr;
};

}  // namespace

Result<ProgramImage> compile_submit_program(const SubmitCode& code, const Target& target,
                                            const std::string& name) {
  for (const WordStore& store : code.stores) {
    const uint32_t width = store.width_bytes;
    if (width != 1 && width != 2 && width != 4 && width != 8) {
      return Error(ErrorCode::InvalidArgument, "Submit program '" + name + "' has a store of " +
                                                   std::to_string(width) +
                                                   " bytes; 1, 2, 4 and 8 are possible.");
    }
  }
  ProgramImage image;
  image.name = name;
  image.buffer_count = kSubmitBuffers;
  const ModuleRenderer render = [&](llvm::LLVMContext& context) {
    return SubmitRenderer(context, name).render(code);
  };
  IGNIS_TRY_ASSIGN(image.object, generate_object(name, target, render, nullptr));
  return image;
}

}  // namespace ignis::codegen
