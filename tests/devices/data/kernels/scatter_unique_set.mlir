// -----// IR Dump Before SimplifyArithPass: xla-simplify-arith{explicit_nan_propagation=false fast_min_max=false} ('func.func' operation: @input_scatter_fusion) //----- //
#indexing_map = #xla.indexing_map<"(th_x, th_y, th_z, bl_x, bl_y, bl_z) -> (th_x / 8), domain: th_x in [0, 47], th_y in [0, 0], th_z in [0, 0], bl_x in [0, 0], bl_y in [0, 0], bl_z in [0, 0]">
#indexing_map1 = #xla.indexing_map<"(th_x, th_y, th_z, bl_x, bl_y, bl_z) -> (th_x / 8, 0, th_x mod 8), domain: th_x in [0, 47], th_y in [0, 0], th_z in [0, 0], bl_x in [0, 0], bl_y in [0, 0], bl_z in [0, 0]">
#indexing_map2 = #xla.indexing_map<"(d0, d1, d2) -> (d1 * 8 + d2), domain: d0 in [0, 5], d1 in [0, 0], d2 in [0, 7]">
module attributes {dlti.dl_spec = #dlti.dl_spec<index = 32 : i32>} {
  func.func @input_scatter_fusion(%arg0: tensor<40x8xf32> {llvm.align = 256 : index, llvm.dereferenceable = 1280 : index, xla.slice_index = 0 : index}, %arg1: tensor<6x8xf32> {llvm.align = 16 : index, llvm.dereferenceable = 192 : index, xla.invariant, xla.slice_index = 1 : index}, %arg2: tensor<6xi32> {llvm.align = 16 : index, llvm.dereferenceable = 24 : index, xla.invariant, xla.slice_index = 2 : index}, %arg3: tensor<40x8xf32> {llvm.align = 256 : index, llvm.dereferenceable = 1280 : index, xla.slice_index = 0 : index}) -> tensor<40x8xf32> attributes {xla.backend_kind = #xla.backend_kind<gpu>, xla.entry} {
    %thread_id_x = gpu.thread_id x {xla.range = [0 : index, 63 : index]}
    %thread_id_y = gpu.thread_id y {xla.range = [0 : index, 0 : index]}
    %thread_id_z = gpu.thread_id z {xla.range = [0 : index, 0 : index]}
    %block_id_x = gpu.block_id x {xla.range = [0 : index, 0 : index]}
    %block_id_y = gpu.block_id y {xla.range = [0 : index, 0 : index]}
    %block_id_z = gpu.block_id z {xla.range = [0 : index, 0 : index]}
    %0 = xla.apply_indexing #indexing_map(%thread_id_x, %thread_id_y, %thread_id_z, %block_id_x, %block_id_y, %block_id_z)
    %c6 = arith.constant 6 : index
    %1 = arith.cmpi ult, %0, %c6 : index
    %2 = scf.if %1 -> (tensor<40x8xf32>) {
      %c0 = arith.constant 0 : index
      %pure_call = xla.pure_call @fused_scatter_bitcast_3(%arg0, %arg1, %arg2, %0, %c0) : (tensor<40x8xf32>, tensor<6x8xf32>, tensor<6xi32>, index, index) -> i32
      %3 = arith.index_cast %pure_call : i32 to index
      %c0_0 = arith.constant 0 : index
      %true = arith.constant true
      %c39 = arith.constant 39 : index
      %4 = arith.cmpi ule, %3, %c39 : index
      %c0_1 = arith.constant 0 : index
      %true_2 = arith.constant true
      %5 = scf.if %4 -> (tensor<40x8xf32>) {
        %xla_loop = xla.loop (%thread_id_x, %thread_id_y, %thread_id_z, %block_id_x, %block_id_y, %block_id_z)[] -> (%ra, %rb, %rc) in #indexing_map1 iter_args(%iter = %arg3) -> (tensor<40x8xf32>) {
          %pure_call_3 = xla.pure_call @fused_scatter_bitcast_1_1(%arg0, %arg1, %arg2, %ra, %rb, %rc) : (tensor<40x8xf32>, tensor<6x8xf32>, tensor<6xi32>, index, index, index) -> f32
          %6 = arith.addi %rb, %3 : index
          %7 = arith.addi %rc, %c0_0 : index
          %pure_call_4 = xla.pure_call @fused_scatter_param_0(%arg0, %arg1, %arg2, %6, %7) : (tensor<40x8xf32>, tensor<6x8xf32>, tensor<6xi32>, index, index) -> f32
          %inserted = tensor.insert %pure_call_3 into %iter[%6, %7] : tensor<40x8xf32>
          xla.yield %inserted : tensor<40x8xf32>
        }
        scf.yield %xla_loop : tensor<40x8xf32>
      } else {
        scf.yield %arg3 : tensor<40x8xf32>
      }
      scf.yield %5 : tensor<40x8xf32>
    } else {
      scf.yield %arg3 : tensor<40x8xf32>
    }
    return %2 : tensor<40x8xf32>
  }
  func.func private @fused_scatter_bitcast_1_1(%arg0: tensor<40x8xf32>, %arg1: tensor<6x8xf32>, %arg2: tensor<6xi32>, %arg3: index {xla.range = [0 : index, 5 : index]}, %arg4: index {xla.range = [0 : index, 0 : index]}, %arg5: index {xla.range = [0 : index, 7 : index]}) -> f32 attributes {llvm.linkage = #llvm.linkage<internal>, no_compute = true} {
    %0 = xla.apply_indexing #indexing_map2(%arg3, %arg4, %arg5)
    %extracted = tensor.extract %arg1[%arg3, %0] : tensor<6x8xf32>
    return %extracted : f32
  }
  func.func private @fused_scatter_bitcast_3(%arg0: tensor<40x8xf32>, %arg1: tensor<6x8xf32>, %arg2: tensor<6xi32>, %arg3: index {xla.range = [0 : index, 5 : index]}, %arg4: index {xla.range = [0 : index, 0 : index]}) -> i32 attributes {llvm.linkage = #llvm.linkage<internal>} {
    %c0_i32 = arith.constant 0 : i32
    %c40_i32 = arith.constant 40 : i32
    %extracted = tensor.extract %arg2[%arg3] : tensor<6xi32>
    %0 = arith.cmpi slt, %extracted, %c0_i32 : i32
    %1 = arith.extui %0 : i1 to i8
    %2 = arith.addi %extracted, %c40_i32 : i32
    %extracted_0 = tensor.extract %arg2[%arg3] : tensor<6xi32>
    %3 = arith.select %0, %2, %extracted_0 : i32
    return %3 : i32
  }
  func.func private @fused_scatter_param_0(%arg0: tensor<40x8xf32>, %arg1: tensor<6x8xf32>, %arg2: tensor<6xi32>, %arg3: index {xla.range = [0 : index, 39 : index]}, %arg4: index {xla.range = [0 : index, 7 : index]}) -> f32 attributes {llvm.linkage = #llvm.linkage<internal>, no_compute = true} {
    %extracted = tensor.extract %arg0[%arg3, %arg4] : tensor<40x8xf32>
    return %extracted : f32
  }
  func.func private @region_0_1_scatter_3(%arg0: f32, %arg1: f32) -> f32 attributes {llvm.linkage = #llvm.linkage<internal>, no_compute = true} {
    return %arg1 : f32
  }
  func.func private @region_0_1_scatter_2(%arg0: f32, %arg1: f32) -> f32 attributes {llvm.linkage = #llvm.linkage<internal>, no_compute = true} {
    return %arg0 : f32
  }
  func.func private @fused_scatter__epilogue__scatter_5_1(%arg0: tensor<40x8xf32>, %arg1: tensor<6x8xf32>, %arg2: tensor<6xi32>, %arg3: index {xla.range = [0 : index, 39 : index]}, %arg4: index {xla.range = [0 : index, 7 : index]}, %arg5: f32) -> f32 attributes {llvm.linkage = #llvm.linkage<internal>, no_compute = true} {
    return %arg5 : f32
  }
}


