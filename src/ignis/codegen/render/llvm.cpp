#include "ignis/codegen/render/llvm.h"

#include "ignis/base/check.h"
#include "ignis/codegen/render/linear.h"
#include "ignis/codegen/render/llvm_address.h"
#include "ignis/codegen/render/llvm_ops.h"
#include "ignis/codegen/render/semantics.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <map>
#include <vector>

namespace ignis::codegen {

using ir::Node;
using ir::Op;
using llvm::BasicBlock;
using llvm::Value;

namespace {

/// One buffer of the kernel: its base address and the metadata every access to it carries.
struct BufferInfo {
  Value* base = nullptr;
  bool is_stored = false;
  llvm::MDNode* alias_scope = nullptr;
  llvm::MDNode* no_alias = nullptr;
};

/// A power of two: how far apart gated loads may be and still share their choice of address.
constexpr int64_t kZeroBytes = 64;

class Renderer {
 public:
  Renderer(const Program& program, const Target& target, llvm::LLVMContext& context)
      : program_(program),
        target_(target),
        context_(context),
        module_(std::make_unique<llvm::Module>(program.name, context)),
        b_(context),
        entry_builder_(context),
        used_(find_used_values(program)),
        addresses_(b_, scopes_) {}

  std::unique_ptr<llvm::Module> render() {
    open_function();
    for (size_t at = 0; at < program_.list.size(); ++at) render_node(at);
    if (gated_exit_ != nullptr) leave_gated();
    IGNIS_CHECK(scopes_.size() == 1) << program_.name << ": open loop at the end";
    b_.CreateRetVoid();
    entry_builder_.CreateBr(first_block_);
    return std::move(module_);
  }

 private:
  // ---- function ----------------------------------------------------------------------------------------------

  void open_function() {
    llvm::Type* const pointer = llvm::PointerType::getUnqual(context_);
    llvm::Type* const i64 = llvm::Type::getInt64Ty(context_);
    auto* const type =
        llvm::FunctionType::get(llvm::Type::getVoidTy(context_), {pointer, i64, i64}, false);
    function_ = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage,
                                       entry_symbol(program_), *module_);
    function_->setDSOLocal(true);
    function_->addFnAttr(llvm::Attribute::NoUnwind);
    function_->addFnAttr("no-builtins");
    function_->addFnAttr("frame-pointer", "none");
    if (target_.vector_bytes >= 64) function_->addFnAttr("prefer-vector-width", "512");
    function_->addParamAttr(0, llvm::Attribute::NoAlias);
    function_->addParamAttr(0, llvm::Attribute::ReadOnly);
    function_->getArg(0)->setName("buffers");
    function_->getArg(1)->setName("part");
    function_->getArg(2)->setName("parts");
    // Variables and buffer addresses stand in the entry block, the list's code starts in the next one.
    entry_builder_.SetInsertPoint(BasicBlock::Create(context_, "entry", function_));
    first_block_ = BasicBlock::Create(context_, "start", function_);
    b_.SetInsertPoint(first_block_);
    open_buffers();
  }

  void open_buffers() {
    llvm::MDBuilder md(context_);
    llvm::MDNode* const domain = md.createAnonymousAliasScopeDomain(entry_symbol(program_));
    for (const Node& n : program_.list) {
      if (n.is(Op::Param)) buffers_[n.id_arg()];
    }
    for (const Node& n : program_.list) {
      if (n.is(Op::Store) && n.src(0).is(Op::Index)) {
        buffers_[n.src(0).src(0).id_arg()].is_stored = true;
      }
    }
    std::vector<llvm::MDNode*> scopes;
    for (auto& [slot, buffer] : buffers_) {
      scopes.push_back(md.createAnonymousAliasScope(domain));
      buffer.alias_scope = llvm::MDNode::get(context_, scopes.back());
      buffer.base = load_base(slot);
    }
    size_t own = 0;
    for (auto& [slot, buffer] : buffers_) {
      std::vector<llvm::Metadata*> others;
      for (size_t i = 0; i < scopes.size(); ++i) {
        if (i != own) others.push_back(scopes[i]);
      }
      if (!others.empty()) buffer.no_alias = llvm::MDNode::get(context_, others);
      ++own;
    }
  }

  Value* load_base(int64_t slot) {
    llvm::Type* const pointer = llvm::PointerType::getUnqual(context_);
    Value* const address = entry_builder_.CreateConstInBoundsGEP1_64(pointer, function_->getArg(0),
                                                                     static_cast<uint64_t>(slot));
    auto* const base = entry_builder_.CreateLoad(pointer, address, "b" + std::to_string(slot));
    llvm::MDNode* const empty = llvm::MDNode::get(context_, {});
    base->setMetadata(llvm::LLVMContext::MD_invariant_load, empty);
    return base;
  }

  // ---- list --------------------------------------------------------------------------------------------------

  void render_node(size_t at) {
    const Node& n = program_.list[at];
    if (LinearForms::is_sum(n) && !used_[n.id()]) return;  // a part of addresses
    if (gated_exit_ != nullptr && !continues_gate(n)) leave_gated();
    switch (n.op()) {
      case Op::Const: set(n, constant_value(context_, n)); break;
      case Op::Param:
      case Op::Index: break;  // rendered where they are used
      case Op::Special: set(n, function_->getArg(n.arg().text == "part" ? 1 : 2)); break;
      case Op::Range: open_loop(n); break;
      case Op::End: close_loop(); break;
      case Op::Reg: declare(n); break;
      case Op::Load: set(n, n.src(0).is(Op::Reg) ? load_reg(n) : load_memory(n)); break;
      case Op::Store: n.src(0).is(Op::Reg) ? store_reg(n) : store_memory(n); break;
      case Op::Stack: set(n, stack(n)); break;
      case Op::Broadcast: set(n, broadcast(n)); break;
      case Op::Extract: set(n, extract(n)); break;
      case Op::Shuffle: set(n, shuffle(n)); break;
      default: set(n, elementwise(n)); break;
    }
  }

  void set(const Node& n, Value* value) {
    values_[n.id()] = value;
    if (n.dtype() == DType::Int64 && n.lanes() == 1) addresses_.define(n, value);
  }
  Value* value(const Node& n) {
    const auto found = values_.find(n.id());
    IGNIS_CHECK(found != values_.end())
        << program_.name << ": used before it stands in the list: " << n;
    return found->second;
  }

  Value* elementwise(const Node& n) {
    llvm::SmallVector<Value*, 3> operands;
    for (int i = 0; i < n.source_count(); ++i) operands.push_back(value(n.src(i)));
    return render_elementwise(b_, target_, n, operands);
  }

  // ---- loops -------------------------------------------------------------------------------------------------

  void open_loop(const Node& range) {
    llvm::Type* const i64 = llvm::Type::getInt64Ty(context_);
    OpenScope scope;
    scope.range = range;
    if (range.range_extent() == 1) {
      scopes_.push_back(std::move(scope));
      return set(range, llvm::ConstantInt::get(i64, 0));
    }
    const bool branch = is_branch(range), runs = range.range_extent() > 0;
    BasicBlock* const before = b_.GetInsertBlock();
    BasicBlock* const body = BasicBlock::Create(context_, branch ? "then" : "loop", function_);
    scope.exit = BasicBlock::Create(context_, "done", function_);
    if (branch) {
      scope.entrance = b_.CreateCondBr(value(range.src(0).src(0)), body, scope.exit);
    } else {
      scope.end = value(range.src(0));
      Value* const positive = b_.CreateICmpSGT(scope.end, llvm::ConstantInt::get(i64, 0));
      scope.entrance = runs ? b_.CreateBr(body) : b_.CreateCondBr(positive, body, scope.exit);
    }
    b_.SetInsertPoint(body);
    if (!branch) {
      scope.counter = b_.CreatePHI(i64, 2, "i");
      scope.counter->addIncoming(llvm::ConstantInt::get(i64, 0), before);
    }
    scopes_.push_back(std::move(scope));
    set(range,
        branch ? llvm::ConstantInt::get(i64, 0) : static_cast<Value*>(scopes_.back().counter));
  }

  void close_loop() {
    const OpenScope scope = std::move(scopes_.back());
    scopes_.pop_back();
    if (scope.exit == nullptr) return;
    if (scope.counter == nullptr) {
      b_.CreateBr(scope.exit);
    } else {
      addresses_.step_cursors(scope);
      Value* const next = b_.CreateAdd(scope.counter, b_.getInt64(1), "next", true, true);
      scope.counter->addIncoming(next, b_.GetInsertBlock());
      b_.CreateCondBr(b_.CreateICmpSLT(next, scope.end), scope.counter->getParent(), scope.exit);
    }
    scope.exit->moveAfter(b_.GetInsertBlock());
    b_.SetInsertPoint(scope.exit);
  }

  // ---- registers ---------------------------------------------------------------------------------------------

  void declare(const Node& reg) {
    set(reg, entry_builder_.CreateAlloca(register_type(context_, reg.dtype(), reg.lanes())));
  }
  Value* load_reg(const Node& load) {
    return b_.CreateLoad(register_type(context_, load.dtype(), load.lanes()), value(load.src(0)));
  }
  void store_reg(const Node& store) { b_.CreateStore(value(store.src(1)), value(store.src(0))); }

  // ---- vectors -----------------------------------------------------------------------------------------------

  Value* stack(const Node& n) {
    Value* v = llvm::PoisonValue::get(register_type(context_, n.dtype(), n.lanes()));
    if (n.lanes() == 1) return value(n.src(0));
    for (int i = 0; i < n.lanes(); ++i) {
      v = b_.CreateInsertElement(v, value(n.src(i)), static_cast<uint64_t>(i));
    }
    return v;
  }
  Value* broadcast(const Node& n) {
    if (n.lanes() == 1) return value(n.src(0));
    return b_.CreateVectorSplat(static_cast<unsigned>(n.lanes()), value(n.src(0)));
  }
  Value* extract(const Node& n) {
    if (n.src(0).lanes() == 1) return value(n.src(0));
    return b_.CreateExtractElement(value(n.src(0)), static_cast<uint64_t>(n.arg().ints[0]));
  }
  Value* shuffle(const Node& n) {
    const int width = n.src(0).lanes();
    if (n.lanes() > 1 && width > 1) {
      llvm::SmallVector<int, 16> mask;
      for (const int64_t lane : n.arg().ints) mask.push_back(static_cast<int>(lane));
      return b_.CreateShuffleVector(value(n.src(0)), value(n.src(1)), mask);
    }
    const auto lane = [&](int64_t i) {
      Value* const from = value(n.src(i < width ? 0 : 1));
      return width == 1 ? from : b_.CreateExtractElement(from, static_cast<uint64_t>(i % width));
    };
    if (n.lanes() == 1) return lane(n.arg().ints[0]);
    Value* v = llvm::PoisonValue::get(register_type(context_, n.dtype(), n.lanes()));
    for (int i = 0; i < n.lanes(); ++i) {
      v = b_.CreateInsertElement(v, lane(n.arg().ints[static_cast<size_t>(i)]),
                                 static_cast<uint64_t>(i));
    }
    return v;
  }

  // ---- memory ------------------------------------------------------------------------------------------------

  BufferInfo& buffer_of(const Node& index) { return buffers_.at(index.src(0).id_arg()); }

  Value* variable_part(const Node& index, int64_t* constant_bytes) {
    return addresses_.variable_part(index.src(0).id_arg(), buffer_of(index).base,
                                    size_bytes(index.src(0).dtype()), index.src(1),
                                    gated_exit_ != nullptr, constant_bytes);
  }
  Value* address(const Node& index) {
    int64_t constant_bytes = 0;
    Value* const from = variable_part(index, &constant_bytes);
    return addresses_.displace(from, constant_bytes);
  }

  template <typename Access>
  Access* annotate(Access* access, const Node& index) {
    const BufferInfo& buffer = buffer_of(index);
    access->setMetadata(llvm::LLVMContext::MD_alias_scope, buffer.alias_scope);
    if (buffer.no_alias) access->setMetadata(llvm::LLVMContext::MD_noalias, buffer.no_alias);
    return access;
  }
  llvm::Align alignment(const Node& index) {
    return llvm::Align(static_cast<uint64_t>(size_bytes(index.src(0).dtype())));
  }

  Value* to_register(Value* stored, DType dtype) {
    if (dtype != DType::Bool) return stored;
    return b_.CreateICmpNE(stored, llvm::Constant::getNullValue(stored->getType()));
  }
  Value* to_memory(Value* v, const Node& n) {
    if (n.dtype() != DType::Bool) return v;
    return b_.CreateZExt(v, memory_type(context_, n.dtype(), n.lanes()));
  }

  Value* load_memory(const Node& load) {
    const Node index = load.src(0);
    llvm::Type* const type = memory_type(context_, load.dtype(), load.lanes());
    Value* gate = load.source_count() == 3 ? value(load.src(2)) : nullptr;
    if (const auto* known = llvm::dyn_cast_or_null<llvm::ConstantInt>(gate)) {
      if (known->isZero()) return value(load.src(1));
      gate = nullptr;
    }
    if (gate == nullptr) {
      auto* const plain = b_.CreateAlignedLoad(type, address(index), alignment(index));
      return to_register(mark_invariant(annotate(plain, index), index), load.dtype());
    }
    if (load.src(2).lanes() > 1) {
      Value* const other = to_memory(value(load.src(1)), load.src(1));
      auto* const masked = b_.CreateMaskedLoad(type, address(index), alignment(index), gate, other);
      return to_register(annotate(masked, index), load.dtype());
    }
    return gated_load(load, gate, type);
  }

  /// Reads a block of zeros instead when the gate is shut: no branch, and where the alternative is zero, as padding
  /// mostly is, no second select. What remains of the constant part below kZeroBytes is added after the select, so
  /// that neighbours behind one gate share it.
  Value* gated_load(const Node& load, Value* gate, llvm::Type* type) {
    const Node index = load.src(0);
    int64_t constant_bytes = 0;
    Value* const open = variable_part(index, &constant_bytes);
    const int64_t rest_bytes = constant_bytes & (kZeroBytes - 1);
    Value* const selected =
        b_.CreateSelect(gate, addresses_.displace(open, constant_bytes - rest_bytes), zeros());
    Value* const from = addresses_.displace(selected, rest_bytes);
    // The buffer's alias scope holds for the zeros too: nothing stores to them.
    auto* const read = annotate(b_.CreateAlignedLoad(type, from, alignment(index)), index);
    Value* const loaded = to_register(mark_invariant(read, index), load.dtype());
    if (is_all_zero_bits(load.src(1))) return loaded;
    return b_.CreateSelect(gate, loaded, value(load.src(1)));
  }

  llvm::LoadInst* mark_invariant(llvm::LoadInst* load, const Node& index) {
    if (!buffer_of(index).is_stored) {
      load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
    }
    return load;
  }

  /// Zeros for the widest value that a gated load may read, at any distance below kZeroBytes.
  Value* zeros() {
    if (zeros_ != nullptr) return zeros_;
    int64_t size = 8;
    for (const Node& n : program_.list) {
      if (n.is(Op::Load))
        size = std::max(size, static_cast<int64_t>(n.lanes()) * size_bytes(n.dtype()));
    }
    auto* const type = llvm::ArrayType::get(llvm::Type::getInt8Ty(context_),
                                            static_cast<uint64_t>(size + kZeroBytes));
    zeros_ = new llvm::GlobalVariable(*module_, type, true, llvm::GlobalValue::PrivateLinkage,
                                      llvm::ConstantAggregateZero::get(type), "zeros");
    zeros_->setAlignment(llvm::Align(64));
    zeros_->setDSOLocal(true);
    return zeros_;
  }

  void store_memory(const Node& store) {
    const Node index = store.src(0);
    Value* gate = store.source_count() == 3 ? value(store.src(2)) : nullptr;
    if (const auto* known = llvm::dyn_cast_or_null<llvm::ConstantInt>(gate)) {
      if (known->isZero()) return;
      gate = nullptr;
    }
    if (gate != nullptr && store.src(2).lanes() > 1) {
      Value* const v = to_memory(value(store.src(1)), store.src(1));
      annotate(b_.CreateMaskedStore(v, address(index), alignment(index), gate), index);
      return;
    }
    if (gate != nullptr && gated_exit_ == nullptr) enter_gated(store.src(2), gate);
    Value* const v = to_memory(value(store.src(1)), store.src(1));
    annotate(b_.CreateAlignedStore(v, address(index), alignment(index)), index);
  }

  // Stores behind one scalar gate that follow each other share a branch. Index nodes make no code of their own.

  void enter_gated(const Node& gate, Value* condition) {
    gate_ = gate;
    gated_exit_ = BasicBlock::Create(context_, "skip", function_);
    BasicBlock* const then = BasicBlock::Create(context_, "store", function_, gated_exit_);
    b_.CreateCondBr(condition, then, gated_exit_);
    b_.SetInsertPoint(then);
  }
  void leave_gated() {
    b_.CreateBr(gated_exit_);
    b_.SetInsertPoint(gated_exit_);
    gated_exit_ = nullptr;
  }
  bool continues_gate(const Node& n) const {
    if (n.is(Op::Index)) return true;
    return n.is(Op::Store) && n.src(0).is(Op::Index) && n.source_count() == 3 && n.src(2) == gate_;
  }

  const Program& program_;
  const Target& target_;
  llvm::LLVMContext& context_;
  std::unique_ptr<llvm::Module> module_;
  llvm::IRBuilder<> b_;
  llvm::IRBuilder<> entry_builder_;
  llvm::Function* function_ = nullptr;
  BasicBlock* first_block_ = nullptr;
  std::map<int64_t, BufferInfo> buffers_;  // by slot
  llvm::DenseMap<uint32_t, Value*> values_;
  std::vector<bool> used_;            // find_used_values
  std::vector<OpenScope> scopes_{1};  // the first one is the function's body
  AddressBuilder addresses_;
  llvm::GlobalVariable* zeros_ = nullptr;
  Node gate_;
  BasicBlock* gated_exit_ = nullptr;
};

}  // namespace

std::unique_ptr<llvm::Module> render_llvm(const Program& program, const Target& target,
                                          llvm::LLVMContext& context) {
  return Renderer(program, target, context).render();
}

}  // namespace ignis::codegen
