// -----// IR Dump Before SimplifyArithPass: xla-simplify-arith{explicit_nan_propagation=false fast_min_max=false} ('func.func' operation: @loop_add_fusion) //----- //
#indexing_map = #xla.indexing_map<"(th_x, th_y, th_z, bl_x, bl_y, bl_z)[s0] -> (bl_x / 2, (bl_x mod 2) * 512 + th_x * 4 + s0), domain: th_x in [0, 127], th_y in [0, 0], th_z in [0, 0], bl_x in [0, 1023], bl_y in [0, 0], bl_z in [0, 0], s0 in [0, 3]">
module @loop_add_fusion_kernel_module attributes {dlti.dl_spec = #dlti.dl_spec<index = 32 : i32>} {
  func.func @loop_add_fusion(%arg0: tensor<512x1024xf32> {llvm.align = 16 : index, llvm.dereferenceable = 2097152 : index, xla.invariant, xla.slice_index = 0 : index}, %arg1: tensor<512x1024xf32> {llvm.align = 16 : index, llvm.dereferenceable = 2097152 : index, xla.invariant, xla.slice_index = 1 : index}, %arg2: tensor<512x1024xf32> {llvm.align = 256 : index, llvm.dereferenceable = 2097152 : index, xla.slice_index = 2 : index}) -> tensor<512x1024xf32> attributes {xla.backend_kind = #xla.backend_kind<gpu>, xla.entry} {
    %0 = xla.workgroup_id x {xla.range = [0 : index, 1023 : index]}
    %1 = xla.workgroup_id y {xla.range = [0 : index, 0 : index]}
    %2 = xla.workgroup_id z {xla.range = [0 : index, 0 : index]}
    %3 = scf.forall (%arg3, %arg4, %arg5) in (128, 1, 1) shared_outs(%arg6 = %arg2) -> (tensor<512x1024xf32>) {
      %xla_loop = xla.loop (%arg3, %arg4, %arg5, %0, %1, %2)[%i] -> (%ra, %rb) in #indexing_map iter_args(%iter = %arg6) -> (tensor<512x1024xf32>) {
        %pure_call = xla.pure_call @fused_add_add_3_1(%arg0, %arg1, %ra, %rb) : (tensor<512x1024xf32>, tensor<512x1024xf32>, index, index) -> f32
        %inserted = tensor.insert %pure_call into %iter[%ra, %rb] : tensor<512x1024xf32>
        xla.yield %inserted : tensor<512x1024xf32>
      }
      scf.forall.in_parallel {
        tensor.parallel_insert_slice %xla_loop into %arg6[0, 0] [512, 1024] [1, 1] : tensor<512x1024xf32> into tensor<512x1024xf32>
      }
    }
    return %3 : tensor<512x1024xf32>
  }
  func.func private @fused_add_add_3_1(%arg0: tensor<512x1024xf32>, %arg1: tensor<512x1024xf32>, %arg2: index {xla.range = [0 : index, 511 : index]}, %arg3: index {xla.range = [0 : index, 1023 : index]}) -> f32 attributes {llvm.linkage = #llvm.linkage<internal>} {
    %extracted = tensor.extract %arg0[%arg2, %arg3] : tensor<512x1024xf32>
    %extracted_0 = tensor.extract %arg1[%arg2, %arg3] : tensor<512x1024xf32>
    %0 = arith.mulf %extracted, %extracted_0 : f32
    %cst = arith.constant 1.000000e+00 : f32
    %1 = arith.addf %0, %cst : f32
    return %1 : f32
  }
}


