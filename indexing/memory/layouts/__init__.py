"""Layouts of other systems: CuTe's layouts with swizzles, and the linear layouts of Triton.

| module     | contents                                                        |
|------------|-----------------------------------------------------------------|
| `swizzle`  | `Swizzle`: a matrix over F2, the field of two elements          |
| `cute`     | `CuteLayout`: shape, stride, swizzle, offset; its map           |
| `text`     | the notation ``Sw<B,M,S> o offset o shape:stride``              |
| `algebra`  | coalesce, composition, complement, divide, product, inverses    |
| `linear`   | `LinearLayout`: bases over F2                                   |
| `of_maps`  | the layouts of both kinds for a map                             |
"""
