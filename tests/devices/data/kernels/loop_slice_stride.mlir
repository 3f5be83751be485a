// -----// IR Dump Before SimplifyArithPass: xla-simplify-arith{explicit_nan_propagation=false fast_min_max=false} ('func.func' operation: @loop_slice_fusion) //----- //
#indexing_map = #xla.indexing_map<"(th_x, th_y, th_z, bl_x, bl_y, bl_z) -> ((bl_x * 128 + th_x) / 29, (bl_x * 128 + th_x) mod 29), domain: th_x in [0, 127], th_y in [0, 0], th_z in [0, 0], bl_x in [0, 1], bl_y in [0, 0], bl_z in [0, 0], bl_x * 128 + th_x in [0, 231]">
#indexing_map1 = #xla.indexing_map<"(d0, d1) -> (d0 * 2), domain: d0 in [0, 7], d1 in [0, 28]">
#indexing_map2 = #xla.indexing_map<"(d0, d1) -> (d1 * 3 + 5), domain: d0 in [0, 7], d1 in [0, 28]">
#indexing_map3 = #xla.indexing_map<"(d0, d1) -> (d1 / 14), domain: d0 in [0, 15], d1 in [0, 97]">
#indexing_map4 = #xla.indexing_map<"(d0, d1) -> (d1 mod 14), domain: d0 in [0, 15], d1 in [0, 97]">
#indexing_map5 = #xla.indexing_map<"(d0, d1, d2) -> (d0 - 1), domain: d0 in [1, 13], d1 in [0, 6], d2 in [3, 13]">
#indexing_map6 = #xla.indexing_map<"(d0, d1, d2) -> (d2 - 3), domain: d0 in [1, 13], d1 in [0, 6], d2 in [3, 13]">
#indexing_map7 = #xla.indexing_map<"(d0, d1, d2) -> (d0 * 11 + d1), domain: d0 in [0, 6], d1 in [0, 10], d2 in [0, 12]">
module @loop_slice_fusion_kernel_module attributes {dlti.dl_spec = #dlti.dl_spec<index = 32 : i32>} {
  func.func @loop_slice_fusion(%arg0: tensor<77x13xf32> {llvm.align = 16 : index, llvm.dereferenceable = 4004 : index, xla.invariant, xla.slice_index = 0 : index}, %arg1: tensor<8x29xf32> {llvm.align = 256 : index, llvm.dereferenceable = 928 : index, xla.slice_index = 1 : index}) -> tensor<8x29xf32> attributes {xla.backend_kind = #xla.backend_kind<gpu>, xla.entry} {
    %0 = xla.workgroup_id x {xla.range = [0 : index, 1 : index]}
    %1 = xla.workgroup_id y {xla.range = [0 : index, 0 : index]}
    %2 = xla.workgroup_id z {xla.range = [0 : index, 0 : index]}
    %3 = scf.forall (%arg2, %arg3, %arg4) in (128, 1, 1) shared_outs(%arg5 = %arg1) -> (tensor<8x29xf32>) {
      %xla_loop = xla.loop (%arg2, %arg3, %arg4, %0, %1, %2)[] -> (%ra, %rb) in #indexing_map iter_args(%iter = %arg5) -> (tensor<8x29xf32>) {
        %pure_call = xla.pure_call @fused_slice_slice_1_1(%arg0, %ra, %rb) : (tensor<77x13xf32>, index, index) -> f32
        %inserted = tensor.insert %pure_call into %iter[%ra, %rb] : tensor<8x29xf32>
        xla.yield %inserted : tensor<8x29xf32>
      }
      scf.forall.in_parallel {
        tensor.parallel_insert_slice %xla_loop into %arg5[0, 0] [8, 29] [1, 1] : tensor<8x29xf32> into tensor<8x29xf32>
      }
    }
    return %3 : tensor<8x29xf32>
  }
  func.func private @fused_slice_slice_1_1(%arg0: tensor<77x13xf32>, %arg1: index {xla.range = [0 : index, 7 : index]}, %arg2: index {xla.range = [0 : index, 28 : index]}) -> f32 attributes {llvm.linkage = #llvm.linkage<internal>} {
    %0 = xla.apply_indexing #indexing_map1(%arg1, %arg2)
    %1 = xla.apply_indexing #indexing_map2(%arg1, %arg2)
    %2 = xla.apply_indexing #indexing_map3(%0, %1)
    %3 = xla.apply_indexing #indexing_map4(%0, %1)
    %true = arith.constant true
    %c1 = arith.constant 1 : index
    %c13 = arith.constant 13 : index
    %4 = arith.cmpi sge, %0, %c1 : index
    %5 = arith.cmpi sle, %0, %c13 : index
    %6 = arith.andi %4, %5 : i1
    %7 = arith.andi %true, %6 : i1
    %c0 = arith.constant 0 : index
    %c6 = arith.constant 6 : index
    %8 = arith.cmpi sge, %2, %c0 : index
    %9 = arith.cmpi sle, %2, %c6 : index
    %10 = arith.andi %8, %9 : i1
    %11 = arith.andi %7, %10 : i1
    %c3 = arith.constant 3 : index
    %c13_0 = arith.constant 13 : index
    %12 = arith.cmpi sge, %3, %c3 : index
    %13 = arith.cmpi sle, %3, %c13_0 : index
    %14 = arith.andi %12, %13 : i1
    %15 = arith.andi %11, %14 : i1
    %16 = scf.if %15 -> (f32) {
      %17 = xla.apply_indexing #indexing_map5(%0, %2, %3)
      %18 = xla.apply_indexing #indexing_map6(%0, %2, %3)
      %19 = xla.apply_indexing #indexing_map7(%2, %18, %17)
      %extracted = tensor.extract %arg0[%19, %17] : tensor<77x13xf32>
      scf.yield %extracted : f32
    } else {
      %cst = arith.constant 0.000000e+00 : f32
      scf.yield %cst : f32
    }
    return %16 : f32
  }
}


