// -----// IR Dump Before SimplifyArithPass: xla-simplify-arith{explicit_nan_propagation=false fast_min_max=false} ('func.func' operation: @loop_dynamic_update_slice_fusion) //----- //
#indexing_map = #xla.indexing_map<"(th_x, th_y, th_z, bl_x, bl_y, bl_z) -> (th_x / 8, 0, th_x mod 8), domain: th_x in [0, 15], th_y in [0, 0], th_z in [0, 0], bl_x in [0, 0], bl_y in [0, 0], bl_z in [0, 0]">
module @loop_dynamic_update_slice_fusion_kernel_module attributes {dlti.dl_spec = #dlti.dl_spec<index = 32 : i32>} {
  func.func @loop_dynamic_update_slice_fusion(%arg0: tensor<2x64x8xf32> {llvm.align = 16 : index, llvm.dereferenceable = 4096 : index, xla.slice_index = 0 : index}, %arg1: tensor<i32> {llvm.align = 16 : index, llvm.dereferenceable = 4 : index, xla.invariant, xla.slice_index = 1 : index}, %arg2: tensor<2x1x8xf32> {llvm.align = 16 : index, llvm.dereferenceable = 64 : index, xla.invariant, xla.slice_index = 2 : index}, %arg3: tensor<2x64x8xf32> {llvm.align = 16 : index, llvm.dereferenceable = 4096 : index, xla.slice_index = 0 : index}) -> tensor<2x64x8xf32> attributes {xla.backend_kind = #xla.backend_kind<gpu>, xla.entry} {
    %0 = xla.workgroup_id x {xla.range = [0 : index, 0 : index]}
    %1 = xla.workgroup_id y {xla.range = [0 : index, 0 : index]}
    %2 = xla.workgroup_id z {xla.range = [0 : index, 0 : index]}
    %3 = scf.forall (%arg4, %arg5, %arg6) in (16, 1, 1) shared_outs(%arg7 = %arg3) -> (tensor<2x64x8xf32>) {
      %xla_loop = xla.loop (%arg4, %arg5, %arg6, %0, %1, %2)[] -> (%ra, %rb, %rc) in #indexing_map iter_args(%iter = %arg7) -> (tensor<2x64x8xf32>) {
        %pure_call = xla.pure_call @fused_dynamic_update_slice_constant_4_1(%arg0, %arg1, %arg2) : (tensor<2x64x8xf32>, tensor<i32>, tensor<2x1x8xf32>) -> i32
        %pure_call_0 = xla.pure_call @fused_dynamic_update_slice_select_n_1_1(%arg0, %arg1, %arg2) : (tensor<2x64x8xf32>, tensor<i32>, tensor<2x1x8xf32>) -> i32
        %pure_call_1 = xla.pure_call @fused_dynamic_update_slice_constant_4_1(%arg0, %arg1, %arg2) : (tensor<2x64x8xf32>, tensor<i32>, tensor<2x1x8xf32>) -> i32
        %c0 = arith.constant 0 : index
        %4 = arith.addi %ra, %c0 : index
        %c0_2 = arith.constant 0 : index
        %5 = arith.index_cast %pure_call_0 : i32 to index
        %c63 = arith.constant 63 : index
        %6 = arith.minsi %5, %c63 : index
        %7 = arith.maxsi %6, %c0_2 : index
        %8 = arith.addi %rb, %7 : index
        %c0_3 = arith.constant 0 : index
        %9 = arith.addi %rc, %c0_3 : index
        %pure_call_4 = xla.pure_call @fused_dynamic_update_slice_mul_1_1(%arg0, %arg1, %arg2, %ra, %rb, %rc) : (tensor<2x64x8xf32>, tensor<i32>, tensor<2x1x8xf32>, index, index, index) -> f32
        %inserted = tensor.insert %pure_call_4 into %iter[%4, %8, %9] : tensor<2x64x8xf32>
        xla.yield %inserted : tensor<2x64x8xf32>
      }
      scf.forall.in_parallel {
        tensor.parallel_insert_slice %xla_loop into %arg7[0, 0, 0] [2, 64, 8] [1, 1, 1] : tensor<2x64x8xf32> into tensor<2x64x8xf32>
      }
    }
    return %3 : tensor<2x64x8xf32>
  }
  func.func private @fused_dynamic_update_slice_select_n_1_1(%arg0: tensor<2x64x8xf32>, %arg1: tensor<i32>, %arg2: tensor<2x1x8xf32>) -> i32 attributes {llvm.linkage = #llvm.linkage<internal>} {
    %c64_i32 = arith.constant 64 : i32
    %extracted = tensor.extract %arg1[] : tensor<i32>
    %pure_call = xla.pure_call @fused_dynamic_update_slice_constant_4_1(%arg0, %arg1, %arg2) : (tensor<2x64x8xf32>, tensor<i32>, tensor<2x1x8xf32>) -> i32
    %0 = arith.cmpi slt, %extracted, %pure_call : i32
    %1 = arith.extui %0 : i1 to i8
    %2 = arith.addi %extracted, %c64_i32 : i32
    %extracted_0 = tensor.extract %arg1[] : tensor<i32>
    %3 = arith.select %0, %2, %extracted_0 : i32
    return %3 : i32
  }
  func.func private @fused_dynamic_update_slice_constant_4_1(%arg0: tensor<2x64x8xf32>, %arg1: tensor<i32>, %arg2: tensor<2x1x8xf32>) -> i32 attributes {llvm.linkage = #llvm.linkage<internal>, no_compute = true} {
    %c0_i32 = arith.constant 0 : i32
    return %c0_i32 : i32
  }
  func.func private @fused_dynamic_update_slice_mul_1_1(%arg0: tensor<2x64x8xf32>, %arg1: tensor<i32>, %arg2: tensor<2x1x8xf32>, %arg3: index {xla.range = [0 : index, 1 : index]}, %arg4: index {xla.range = [0 : index, 0 : index]}, %arg5: index {xla.range = [0 : index, 7 : index]}) -> f32 attributes {llvm.linkage = #llvm.linkage<internal>} {
    %extracted = tensor.extract %arg2[%arg3, %arg4, %arg5] : tensor<2x1x8xf32>
    %cst = arith.constant 2.000000e+00 : f32
    %0 = arith.mulf %extracted, %cst : f32
    return %0 : f32
  }
  func.func private @fused_dynamic_update_slice_param_0(%arg0: tensor<2x64x8xf32>, %arg1: tensor<i32>, %arg2: tensor<2x1x8xf32>, %arg3: index {xla.range = [0 : index, 1 : index]}, %arg4: index {xla.range = [0 : index, 63 : index]}, %arg5: index {xla.range = [0 : index, 7 : index]}) -> f32 attributes {llvm.linkage = #llvm.linkage<internal>, no_compute = true} {
    %extracted = tensor.extract %arg0[%arg3, %arg4, %arg5] : tensor<2x64x8xf32>
    return %extracted : f32
  }
  func.func private @fused_dynamic_update_slice__epilogue__dynamic_update_slice_1_1(%arg0: tensor<2x64x8xf32>, %arg1: tensor<i32>, %arg2: tensor<2x1x8xf32>, %arg3: index {xla.range = [0 : index, 1 : index]}, %arg4: index {xla.range = [0 : index, 63 : index]}, %arg5: index {xla.range = [0 : index, 7 : index]}, %arg6: f32) -> f32 attributes {llvm.linkage = #llvm.linkage<internal>, no_compute = true} {
    return %arg6 : f32
  }
}


