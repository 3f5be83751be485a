// -----// IR Dump Before SimplifyArithPass: xla-simplify-arith{explicit_nan_propagation=false fast_min_max=false} ('func.func' operation: @input_transpose_fusion) //----- //
#indexing_map = #xla.indexing_map<"(d0, d1, d2, d3, d4, d5)[s0, s1] -> ((d3 / 3) * 32 + s0 * 4 + d0 / 32, (d3 mod 3) * 32 + d0 mod 32), domain: d0 in [0, 127], d1 in [0, 0], d2 in [0, 0], d3 in [0, 5], d4 in [0, 0], d5 in [0, 0], s0 in [0, 7], s1 in [0, 0]">
#indexing_map1 = #xla.indexing_map<"(th_x, th_y, th_z, bl_x, bl_y, bl_z)[s0, s1] -> ((s0 * 128 + th_x + s1) mod 32), domain: th_x in [0, 127], th_y in [0, 0], th_z in [0, 0], bl_x in [0, 5], bl_y in [0, 0], bl_z in [0, 0], s0 in [0, 7], s1 in [0, 0]">
#indexing_map2 = #xla.indexing_map<"(th_x, th_y, th_z, bl_x, bl_y, bl_z)[s0, s1] -> ((s0 * 128 + th_x + s1) / 32), domain: th_x in [0, 127], th_y in [0, 0], th_z in [0, 0], bl_x in [0, 5], bl_y in [0, 0], bl_z in [0, 0], s0 in [0, 7], s1 in [0, 0]">
#indexing_map3 = #xla.indexing_map<"(d0, d1, d2, d3, d4, d5)[s0, s1] -> ((d3 / 3) * 32 + s0 * 4 + d0 / 32), domain: d0 in [0, 127], d1 in [0, 0], d2 in [0, 0], d3 in [0, 5], d4 in [0, 0], d5 in [0, 0], s0 in [0, 7], s1 in [0, 0]">
#indexing_map4 = #xla.indexing_map<"(d0, d1, d2, d3, d4, d5)[s0, s1] -> ((d3 mod 3) * 32 + d0 mod 32), domain: d0 in [0, 127], d1 in [0, 0], d2 in [0, 0], d3 in [0, 5], d4 in [0, 0], d5 in [0, 0], s0 in [0, 7], s1 in [0, 0]">
#indexing_map5 = #xla.indexing_map<"(d0, d1, d2, d3, d4, d5)[s0, s1] -> ((d3 mod 3) * 32 + s0 * 4 + d0 / 32, (d3 / 3) * 32 + d0 mod 32), domain: d0 in [0, 127], d1 in [0, 0], d2 in [0, 0], d3 in [0, 5], d4 in [0, 0], d5 in [0, 0], s0 in [0, 7], s1 in [0, 0]">
#indexing_map6 = #xla.indexing_map<"(d0, d1, d2, d3, d4, d5)[s0, s1] -> ((d3 mod 3) * 32 + s0 * 4 + d0 / 32), domain: d0 in [0, 127], d1 in [0, 0], d2 in [0, 0], d3 in [0, 5], d4 in [0, 0], d5 in [0, 0], s0 in [0, 7], s1 in [0, 0]">
#indexing_map7 = #xla.indexing_map<"(d0, d1, d2, d3, d4, d5)[s0, s1] -> ((d3 / 3) * 32 + d0 mod 32), domain: d0 in [0, 127], d1 in [0, 0], d2 in [0, 0], d3 in [0, 5], d4 in [0, 0], d5 in [0, 0], s0 in [0, 7], s1 in [0, 0]">
module attributes {dlti.dl_spec = #dlti.dl_spec<index = 32 : i32>} {
  func.func @input_transpose_fusion(%arg0: tensor<64x96xf32> {llvm.align = 16 : index, llvm.dereferenceable = 24576 : index, xla.invariant, xla.slice_index = 0 : index}, %arg1: tensor<96x64xf32> {llvm.align = 256 : index, llvm.dereferenceable = 24576 : index, xla.slice_index = 1 : index}) -> tensor<96x64xf32> attributes {xla.backend_kind = #xla.backend_kind<gpu>, xla.entry} {
    %thread_id_x = gpu.thread_id x {xla.range = [0 : index, 127 : index]}
    %thread_id_y = gpu.thread_id y {xla.range = [0 : index, 0 : index]}
    %thread_id_z = gpu.thread_id z {xla.range = [0 : index, 0 : index]}
    %block_id_x = gpu.block_id x {xla.range = [0 : index, 5 : index]}
    %block_id_y = gpu.block_id y {xla.range = [0 : index, 0 : index]}
    %block_id_z = gpu.block_id z {xla.range = [0 : index, 0 : index]}
    %shmem = xla_gpu.allocate_shared : tensor<32x33xf32>
    %xla_loop = xla.loop (%thread_id_x, %thread_id_y, %thread_id_z, %block_id_x, %block_id_y, %block_id_z)[%i, %j] -> (%ra, %rb) in #indexing_map iter_args(%iter = %shmem) -> (tensor<32x33xf32>) {
      %0 = xla.apply_indexing #indexing_map1(%thread_id_x, %thread_id_y, %thread_id_z, %block_id_x, %block_id_y, %block_id_z)[%i, %j]
      %1 = xla.apply_indexing #indexing_map2(%thread_id_x, %thread_id_y, %thread_id_z, %block_id_x, %block_id_y, %block_id_z)[%i, %j]
      %2 = xla.apply_indexing #indexing_map3(%thread_id_x, %thread_id_y, %thread_id_z, %block_id_x, %block_id_y, %block_id_z)[%i, %j]
      %3 = xla.apply_indexing #indexing_map4(%thread_id_x, %thread_id_y, %thread_id_z, %block_id_x, %block_id_y, %block_id_z)[%i, %j]
      %pure_call = xla.pure_call @fused_transpose_exponential_2(%arg0, %2, %3) : (tensor<64x96xf32>, index, index) -> f32
      %inserted = tensor.insert %pure_call into %iter[%0, %1] : tensor<32x33xf32>
      xla.yield %inserted : tensor<32x33xf32>
    }
    %synced_tensor = xla_gpu.sync_threads %xla_loop : tensor<32x33xf32>
    %xla_loop_0 = xla.loop (%thread_id_x, %thread_id_y, %thread_id_z, %block_id_x, %block_id_y, %block_id_z)[%i, %j] -> (%ra, %rb) in #indexing_map5 iter_args(%iter = %arg1) -> (tensor<96x64xf32>) {
      %0 = xla.apply_indexing #indexing_map2(%thread_id_x, %thread_id_y, %thread_id_z, %block_id_x, %block_id_y, %block_id_z)[%i, %j]
      %1 = xla.apply_indexing #indexing_map1(%thread_id_x, %thread_id_y, %thread_id_z, %block_id_x, %block_id_y, %block_id_z)[%i, %j]
      %extracted = tensor.extract %synced_tensor[%0, %1] : tensor<32x33xf32>
      %pure_call = xla.pure_call @fused_transpose__epilogue__transpose_1_1(%arg0, %thread_id_x, %thread_id_y, %thread_id_z, %block_id_x, %block_id_y, %block_id_z, %i, %j, %extracted) : (tensor<64x96xf32>, index, index, index, index, index, index, index, index, f32) -> f32
      %2 = xla.apply_indexing #indexing_map6(%thread_id_x, %thread_id_y, %thread_id_z, %block_id_x, %block_id_y, %block_id_z)[%i, %j]
      %3 = xla.apply_indexing #indexing_map7(%thread_id_x, %thread_id_y, %thread_id_z, %block_id_x, %block_id_y, %block_id_z)[%i, %j]
      %inserted = tensor.insert %pure_call into %iter[%2, %3] : tensor<96x64xf32>
      xla.yield %inserted : tensor<96x64xf32>
    }
    return %xla_loop_0 : tensor<96x64xf32>
  }
  func.func private @fused_transpose_exponential_2(%arg0: tensor<64x96xf32>, %arg1: index {xla.range = [0 : index, 63 : index]}, %arg2: index {xla.range = [0 : index, 95 : index]}) -> f32 attributes {llvm.linkage = #llvm.linkage<internal>} {
    %extracted = tensor.extract %arg0[%arg1, %arg2] : tensor<64x96xf32>
    %0 = math.exp %extracted : f32
    return %0 : f32
  }
  func.func private @fused_transpose__epilogue__transpose_1_1(%arg0: tensor<64x96xf32>, %arg1: index {xla.range = [0 : index, 127 : index]}, %arg2: index {xla.range = [0 : index, 0 : index]}, %arg3: index {xla.range = [0 : index, 0 : index]}, %arg4: index {xla.range = [0 : index, 5 : index]}, %arg5: index {xla.range = [0 : index, 0 : index]}, %arg6: index {xla.range = [0 : index, 0 : index]}, %arg7: index {xla.range = [0 : index, 7 : index]}, %arg8: index {xla.range = [0 : index, 0 : index]}, %arg9: f32) -> f32 attributes {llvm.linkage = #llvm.linkage<internal>, no_compute = true} {
    return %arg9 : f32
  }
}


