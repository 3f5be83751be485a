// -----// IR Dump Before SimplifyArithPass: xla-simplify-arith{explicit_nan_propagation=false fast_min_max=false} ('func.func' operation: @input_concatenate_fusion) //----- //
#indexing_map = #xla.indexing_map<"(th_x, th_y, th_z, bl_x, bl_y, bl_z) -> (bl_x / 2, th_x), domain: th_x in [0, 127], th_y in [0, 0], th_z in [0, 0], bl_x in [0, 126], bl_y in [0, 0], bl_z in [0, 0], bl_x mod 2 in [0, 0]">
#indexing_map1 = #xla.indexing_map<"(th_x, th_y, th_z, bl_x, bl_y, bl_z) -> (bl_x / 2), domain: th_x in [0, 127], th_y in [0, 0], th_z in [0, 0], bl_x in [0, 127], bl_y in [0, 0], bl_z in [0, 0]">
#indexing_map2 = #xla.indexing_map<"(th_x, th_y, th_z, bl_x, bl_y, bl_z) -> ((bl_x mod 2) * 128 + th_x), domain: th_x in [0, 127], th_y in [0, 0], th_z in [0, 0], bl_x in [0, 127], bl_y in [0, 0], bl_z in [0, 0]">
#indexing_map3 = #xla.indexing_map<"(th_x, th_y, th_z, bl_x, bl_y, bl_z) -> (bl_x / 2, th_x + 128), domain: th_x in [0, 127], th_y in [0, 0], th_z in [0, 0], bl_x in [0, 126], bl_y in [0, 0], bl_z in [0, 0], bl_x mod 2 in [0, 0]">
#indexing_map4 = #xla.indexing_map<"(th_x, th_y, th_z, bl_x, bl_y, bl_z) -> (bl_x / 2, (bl_x mod 2) * 128 + th_x + 256), domain: th_x in [0, 127], th_y in [0, 0], th_z in [0, 0], bl_x in [0, 127], bl_y in [0, 0], bl_z in [0, 0]">
module @input_concatenate_fusion_kernel_module attributes {dlti.dl_spec = #dlti.dl_spec<index = 32 : i32>} {
  func.func @input_concatenate_fusion(%arg0: tensor<64x128xf32> {llvm.align = 16 : index, llvm.dereferenceable = 32768 : index, xla.invariant, xla.slice_index = 0 : index}, %arg1: tensor<64x256xf32> {llvm.align = 16 : index, llvm.dereferenceable = 65536 : index, xla.invariant, xla.slice_index = 1 : index}, %arg2: tensor<64x128xf32> {llvm.align = 16 : index, llvm.dereferenceable = 32768 : index, xla.invariant, xla.slice_index = 2 : index}, %arg3: tensor<64x512xf32> {llvm.align = 256 : index, llvm.dereferenceable = 131072 : index, xla.slice_index = 3 : index}) -> tensor<64x512xf32> attributes {xla.backend_kind = #xla.backend_kind<gpu>, xla.entry} {
    %0 = xla.workgroup_id x {xla.range = [0 : index, 127 : index]}
    %1 = xla.workgroup_id y {xla.range = [0 : index, 0 : index]}
    %2 = xla.workgroup_id z {xla.range = [0 : index, 0 : index]}
    %3 = scf.forall (%arg4, %arg5, %arg6) in (128, 1, 1) shared_outs(%arg7 = %arg3) -> (tensor<64x512xf32>) {
      %xla_loop = xla.loop (%arg4, %arg5, %arg6, %0, %1, %2)[] -> (%ra, %rb) in #indexing_map iter_args(%iter = %arg3) -> (tensor<64x512xf32>) {
        %4 = xla.apply_indexing #indexing_map1(%arg4, %arg5, %arg6, %0, %1, %2)
        %5 = xla.apply_indexing #indexing_map2(%arg4, %arg5, %arg6, %0, %1, %2)
        %pure_call = xla.pure_call @fused_concatenate_mul_3_1(%arg0, %arg1, %arg2, %4, %5) : (tensor<64x128xf32>, tensor<64x256xf32>, tensor<64x128xf32>, index, index) -> f32
        %pure_call_2 = xla.pure_call @fused_concatenate__epilogue__concatenate_1_1(%arg0, %arg1, %arg2, %ra, %rb, %pure_call) : (tensor<64x128xf32>, tensor<64x256xf32>, tensor<64x128xf32>, index, index, f32) -> f32
        %inserted = tensor.insert %pure_call_2 into %iter[%ra, %rb] : tensor<64x512xf32>
        xla.yield %inserted : tensor<64x512xf32>
      }
      %xla_loop_0 = xla.loop (%arg4, %arg5, %arg6, %0, %1, %2)[] -> (%ra, %rb) in #indexing_map3 iter_args(%iter = %xla_loop) -> (tensor<64x512xf32>) {
        %4 = xla.apply_indexing #indexing_map1(%arg4, %arg5, %arg6, %0, %1, %2)
        %5 = xla.apply_indexing #indexing_map2(%arg4, %arg5, %arg6, %0, %1, %2)
        %pure_call = xla.pure_call @fused_concatenate_param_0_1(%arg0, %arg1, %arg2, %4, %5) : (tensor<64x128xf32>, tensor<64x256xf32>, tensor<64x128xf32>, index, index) -> f32
        %pure_call_2 = xla.pure_call @fused_concatenate__epilogue__concatenate_1_1(%arg0, %arg1, %arg2, %ra, %rb, %pure_call) : (tensor<64x128xf32>, tensor<64x256xf32>, tensor<64x128xf32>, index, index, f32) -> f32
        %inserted = tensor.insert %pure_call_2 into %iter[%ra, %rb] : tensor<64x512xf32>
        xla.yield %inserted : tensor<64x512xf32>
      }
      %xla_loop_1 = xla.loop (%arg4, %arg5, %arg6, %0, %1, %2)[] -> (%ra, %rb) in #indexing_map4 iter_args(%iter = %xla_loop_0) -> (tensor<64x512xf32>) {
        %4 = xla.apply_indexing #indexing_map1(%arg4, %arg5, %arg6, %0, %1, %2)
        %5 = xla.apply_indexing #indexing_map2(%arg4, %arg5, %arg6, %0, %1, %2)
        %pure_call = xla.pure_call @fused_concatenate_exp_1_1(%arg0, %arg1, %arg2, %4, %5) : (tensor<64x128xf32>, tensor<64x256xf32>, tensor<64x128xf32>, index, index) -> f32
        %pure_call_2 = xla.pure_call @fused_concatenate__epilogue__concatenate_1_1(%arg0, %arg1, %arg2, %ra, %rb, %pure_call) : (tensor<64x128xf32>, tensor<64x256xf32>, tensor<64x128xf32>, index, index, f32) -> f32
        %inserted = tensor.insert %pure_call_2 into %iter[%ra, %rb] : tensor<64x512xf32>
        xla.yield %inserted : tensor<64x512xf32>
      }
      scf.forall.in_parallel {
        tensor.parallel_insert_slice %xla_loop_1 into %arg7[0, 0] [64, 512] [1, 1] : tensor<64x512xf32> into tensor<64x512xf32>
      }
    }
    return %3 : tensor<64x512xf32>
  }
  func.func private @fused_concatenate_exp_1_1(%arg0: tensor<64x128xf32>, %arg1: tensor<64x256xf32>, %arg2: tensor<64x128xf32>, %arg3: index {xla.range = [0 : index, 63 : index]}, %arg4: index {xla.range = [0 : index, 255 : index]}) -> f32 attributes {llvm.linkage = #llvm.linkage<internal>} {
    %extracted = tensor.extract %arg1[%arg3, %arg4] : tensor<64x256xf32>
    %0 = math.exp %extracted : f32
    return %0 : f32
  }
  func.func private @fused_concatenate_param_0_1(%arg0: tensor<64x128xf32>, %arg1: tensor<64x256xf32>, %arg2: tensor<64x128xf32>, %arg3: index {xla.range = [0 : index, 63 : index]}, %arg4: index {xla.range = [0 : index, 127 : index]}) -> f32 attributes {llvm.linkage = #llvm.linkage<internal>, no_compute = true} {
    %extracted = tensor.extract %arg0[%arg3, %arg4] : tensor<64x128xf32>
    return %extracted : f32
  }
  func.func private @fused_concatenate_mul_3_1(%arg0: tensor<64x128xf32>, %arg1: tensor<64x256xf32>, %arg2: tensor<64x128xf32>, %arg3: index {xla.range = [0 : index, 63 : index]}, %arg4: index {xla.range = [0 : index, 127 : index]}) -> f32 attributes {llvm.linkage = #llvm.linkage<internal>} {
    %extracted = tensor.extract %arg2[%arg3, %arg4] : tensor<64x128xf32>
    %cst = arith.constant 2.000000e+00 : f32
    %0 = arith.mulf %extracted, %cst : f32
    return %0 : f32
  }
  func.func private @fused_concatenate__epilogue__concatenate_1_1(%arg0: tensor<64x128xf32>, %arg1: tensor<64x256xf32>, %arg2: tensor<64x128xf32>, %arg3: index {xla.range = [0 : index, 63 : index]}, %arg4: index {xla.range = [0 : index, 511 : index]}, %arg5: f32) -> f32 attributes {llvm.linkage = #llvm.linkage<internal>, no_compute = true} {
    return %arg5 : f32
  }
}


