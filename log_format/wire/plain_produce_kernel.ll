; Written by scripts/kernels.py from plain_produce_kernel.py with numba 0.68.1.
declare i64 @llvm.smax.i64(i64, i64)
declare { i64, i1 } @llvm.usub.with.overflow.i64(i64, i64)
declare void @llvm.memset.p0.i64(ptr captures(none), i8, i64, i1 immarg)

define internal i32 @compiled_small_uvarint(ptr %retptr, ptr %excinfo, ptr %arg.data, i64 %arg.at, i64 %arg.end) {
B0:
  %.22 = icmp slt i64 %arg.at, %arg.end
  br i1 %.22, label %B36, label %common.ret

B36:
  %.48 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %.49 = load i8, ptr %.48, align 1
  %promoted = zext i8 %.49 to i64
  %.53 = add nsw i64 %arg.at, 1
  %0 = and i64 %promoted, 127
  %.69 = icmp sgt i8 %.49, -1
  br i1 %.69, label %common.ret, label %B110

common.ret:
  %.sink53 = phi i64 [ 0, %B0 ], [ %0, %B36 ], [ 0, %B110 ], [ %.63.1, %B36.1 ], [ 0, %B110.1 ], [ %spec.select, %B36.2 ]
  %.sink = phi i64 [ -1, %B0 ], [ %.53, %B36 ], [ -1, %B110 ], [ %.53.1, %B36.1 ], [ -1, %B110.1 ], [ %spec.select1, %B36.2 ]
  store i64 %.sink53, ptr %retptr, align 8
  %retptr.repack44 = getelementptr i8, ptr %retptr, i64 8
  store i64 %.sink, ptr %retptr.repack44, align 8
  ret i32 0

B110:
  %.102 = icmp slt i64 %.53, %arg.end
  br i1 %.102, label %B36.1, label %common.ret

B36.1:
  %sunkaddr = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr2 = getelementptr i8, ptr %sunkaddr, i64 1
  %.49.1 = load i8, ptr %sunkaddr2, align 1
  %promoted3 = zext i8 %.49.1 to i64
  %.53.1 = add nsw i64 %arg.at, 2
  %1 = and i64 %promoted3, 127
  %.61.1 = shl nuw nsw i64 %1, 7
  %.63.1 = or i64 %.61.1, %0
  %.69.1 = icmp sgt i8 %.49.1, -1
  br i1 %.69.1, label %common.ret, label %B110.1

B110.1:
  %.102.1 = icmp slt i64 %.53.1, %arg.end
  br i1 %.102.1, label %B36.2, label %common.ret

B36.2:
  %sunkaddr5 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr6 = getelementptr i8, ptr %sunkaddr5, i64 2
  %.49.2 = load i8, ptr %sunkaddr6, align 1
  %promoted7 = zext i8 %.49.2 to i64
  %.53.2 = add nsw i64 %arg.at, 3
  %2 = and i64 %promoted7, 127
  %.61.2 = shl nuw nsw i64 %2, 14
  %.63.2 = or i64 %.61.2, %.63.1
  %.69.2 = icmp sgt i8 %.49.2, -1
  %spec.select = select i1 %.69.2, i64 %.63.2, i64 0
  %spec.select1 = select i1 %.69.2, i64 %.53.2, i64 -1
  br label %common.ret
}

define internal i32 @compiled_has_plain_header(ptr %retptr, ptr %excinfo, ptr %arg.data, i64 %arg.at, i64 %arg.size, ptr %arg.numbers) {
B0.endif.endif.endif.endi...endif.1.endif.endif:
  %const = bitcast i64 -4294967296 to i64
  %.6.i.i.i = getelementptr i8, ptr %arg.data, i64 %arg.at
  %.7.i.i.i = load i8, ptr %.6.i.i.i, align 1
  %.8.i.i.i = zext i8 %.7.i.i.i to i64
  %.10.i.i.i = shl nuw nsw i64 %.8.i.i.i, 24
  %.12.i.i.i = getelementptr i8, ptr %.6.i.i.i, i64 1
  %.13.i.i.i = load i8, ptr %.12.i.i.i, align 1
  %.14.i.i.i = zext i8 %.13.i.i.i to i64
  %.16.i.i.i = shl nuw nsw i64 %.14.i.i.i, 16
  %.19.i.i.i = getelementptr i8, ptr %.6.i.i.i, i64 2
  %.20.i.i.i = load i8, ptr %.19.i.i.i, align 1
  %.21.i.i.i = zext i8 %.20.i.i.i to i64
  %.26.i.i.i = getelementptr i8, ptr %.6.i.i.i, i64 3
  %.27.i.i.i = load i8, ptr %.26.i.i.i, align 1
  %.28.i.i.i = zext i8 %.27.i.i.i to i64
  %0 = or i64 %.16.i.i.i, %.10.i.i.i
  %.17.i.i.i = or i64 %0, %.28.i.i.i
  %.6.i.i = getelementptr i8, ptr %.6.i.i.i, i64 4
  %.7.i.i = load i8, ptr %.6.i.i, align 1
  %.8.i.i = zext i8 %.7.i.i to i64
  %.10.i.i = shl nuw nsw i64 %.8.i.i, 24
  %.12.i.i = getelementptr i8, ptr %.6.i.i.i, i64 5
  %.13.i.i = load i8, ptr %.12.i.i, align 1
  %.14.i.i = zext i8 %.13.i.i to i64
  %.16.i.i = shl nuw nsw i64 %.14.i.i, 16
  %.19.i.i = getelementptr i8, ptr %.6.i.i.i, i64 6
  %.20.i.i = load i8, ptr %.19.i.i, align 1
  %.21.i.i = zext i8 %.20.i.i to i64
  %.23.i.i = shl nuw nsw i64 %.21.i.i, 8
  %.26.i.i = getelementptr i8, ptr %.6.i.i.i, i64 7
  %.27.i.i = load i8, ptr %.26.i.i, align 1
  %.28.i.i = zext i8 %.27.i.i to i64
  %1 = shl nuw nsw i64 %.21.i.i.i, 40
  %2 = shl nuw i64 %.17.i.i.i, 32
  %.17.i.i = or i64 %2, %1
  %.24.i.i = or i64 %.17.i.i, %.10.i.i
  %.30.i.i = or i64 %.24.i.i, %.16.i.i
  %3 = or i64 %.30.i.i, %.23.i.i
  %.60.i = or i64 %3, %.28.i.i
  %.6.i.i1 = getelementptr i8, ptr %.6.i.i.i, i64 8
  %.7.i.i2 = load i8, ptr %.6.i.i1, align 1
  %.8.i.i3 = zext i8 %.7.i.i2 to i64
  %.10.i.i4 = shl nuw nsw i64 %.8.i.i3, 24
  %.12.i.i5 = getelementptr i8, ptr %.6.i.i.i, i64 9
  %.13.i.i6 = load i8, ptr %.12.i.i5, align 1
  %.14.i.i7 = zext i8 %.13.i.i6 to i64
  %.16.i.i8 = shl nuw nsw i64 %.14.i.i7, 16
  %.19.i.i9 = getelementptr i8, ptr %.6.i.i.i, i64 10
  %.20.i.i10 = load i8, ptr %.19.i.i9, align 1
  %.21.i.i11 = zext i8 %.20.i.i10 to i64
  %.23.i.i12 = shl nuw nsw i64 %.21.i.i11, 8
  %.26.i.i13 = getelementptr i8, ptr %.6.i.i.i, i64 11
  %.27.i.i14 = load i8, ptr %.26.i.i13, align 1
  %.28.i.i15 = zext i8 %.27.i.i14 to i64
  %4 = or i64 %.16.i.i8, %.10.i.i4
  %.17.i.i16 = or i64 %4, %.28.i.i15
  %.30.i.i17 = or i64 %.17.i.i16, %.23.i.i12
  %.37.i = icmp slt i8 %.7.i.i2, 0
  %.40.i = or i64 %.30.i.i17, %const
  %"$phi60.0.2.0.i" = select i1 %.37.i, i64 %.40.i, i64 %.30.i.i17
  %.66 = getelementptr i8, ptr %arg.numbers, i64 120
  store i64 %.60.i, ptr %.66, align 8
  %.69 = getelementptr i8, ptr %arg.numbers, i64 128
  store i64 %"$phi60.0.2.0.i", ptr %.69, align 8
  %.6.i.i18 = getelementptr i8, ptr %.6.i.i.i, i64 12
  %.7.i.i19 = load i8, ptr %.6.i.i18, align 1
  %.8.i.i20 = zext i8 %.7.i.i19 to i64
  %.10.i.i21 = shl nuw nsw i64 %.8.i.i20, 24
  %.12.i.i22 = getelementptr i8, ptr %.6.i.i.i, i64 13
  %.13.i.i23 = load i8, ptr %.12.i.i22, align 1
  %.14.i.i24 = zext i8 %.13.i.i23 to i64
  %.16.i.i25 = shl nuw nsw i64 %.14.i.i24, 16
  %.19.i.i26 = getelementptr i8, ptr %.6.i.i.i, i64 14
  %.20.i.i27 = load i8, ptr %.19.i.i26, align 1
  %.21.i.i28 = zext i8 %.20.i.i27 to i64
  %.23.i.i29 = shl nuw nsw i64 %.21.i.i28, 8
  %.26.i.i30 = getelementptr i8, ptr %.6.i.i.i, i64 15
  %.27.i.i31 = load i8, ptr %.26.i.i30, align 1
  %.28.i.i32 = zext i8 %.27.i.i31 to i64
  %5 = or i64 %.16.i.i25, %.10.i.i21
  %.17.i.i33 = or i64 %5, %.28.i.i32
  %.30.i.i34 = or i64 %.17.i.i33, %.23.i.i29
  %.37.i35 = icmp slt i8 %.7.i.i19, 0
  %.40.i36 = or i64 %.30.i.i34, %const
  %"$phi60.0.2.0.i37" = select i1 %.37.i35, i64 %.40.i36, i64 %.30.i.i34
  %.98 = getelementptr i8, ptr %.6.i.i.i, i64 16
  %.99 = load i8, ptr %.98, align 1
  %.100 = zext i8 %.99 to i64
  %.103 = getelementptr i8, ptr %arg.numbers, i64 136
  store i64 %"$phi60.0.2.0.i37", ptr %.103, align 8
  %.106 = getelementptr i8, ptr %arg.numbers, i64 144
  store i64 %.100, ptr %.106, align 8
  %.6.i = getelementptr i8, ptr %.6.i.i.i, i64 17
  %.7.i = load i8, ptr %.6.i, align 1
  %.8.i = zext i8 %.7.i to i64
  %.10.i = shl nuw nsw i64 %.8.i, 24
  %.12.i = getelementptr i8, ptr %.6.i.i.i, i64 18
  %.13.i = load i8, ptr %.12.i, align 1
  %.14.i = zext i8 %.13.i to i64
  %.16.i = shl nuw nsw i64 %.14.i, 16
  %.17.i = or i64 %.16.i, %.10.i
  %.19.i = getelementptr i8, ptr %.6.i.i.i, i64 19
  %.20.i = load i8, ptr %.19.i, align 1
  %.21.i = zext i8 %.20.i to i64
  %.23.i = shl nuw nsw i64 %.21.i, 8
  %.24.i = or i64 %.17.i, %.23.i
  %.26.i = getelementptr i8, ptr %.6.i.i.i, i64 20
  %.27.i = load i8, ptr %.26.i, align 1
  %.28.i = zext i8 %.27.i to i64
  %.30.i = or i64 %.24.i, %.28.i
  %.6.i38 = getelementptr i8, ptr %.6.i.i.i, i64 21
  %.7.i39 = load i8, ptr %.6.i38, align 1
  %.8.i40 = zext i8 %.7.i39 to i64
  %.10.i41 = shl nuw nsw i64 %.8.i40, 8
  %.12.i42 = getelementptr i8, ptr %.6.i.i.i, i64 22
  %.13.i43 = load i8, ptr %.12.i42, align 1
  %.14.i44 = zext i8 %.13.i43 to i64
  %.16.i45 = or i64 %.10.i41, %.14.i44
  %.21.i46 = icmp slt i8 %.7.i39, 0
  %.24.i47 = or i64 %.16.i45, -65536
  %spec.select.i = select i1 %.21.i46, i64 %.24.i47, i64 %.16.i45
  %.161 = getelementptr i8, ptr %arg.numbers, i64 152
  store i64 %.30.i, ptr %.161, align 8
  %.164 = getelementptr i8, ptr %arg.numbers, i64 160
  store i64 %spec.select.i, ptr %.164, align 8
  %.6.i.i48 = getelementptr i8, ptr %.6.i.i.i, i64 23
  %.7.i.i49 = load i8, ptr %.6.i.i48, align 1
  %.8.i.i50 = zext i8 %.7.i.i49 to i64
  %.10.i.i51 = shl nuw nsw i64 %.8.i.i50, 24
  %.12.i.i52 = getelementptr i8, ptr %.6.i.i.i, i64 24
  %.13.i.i53 = load i8, ptr %.12.i.i52, align 1
  %.14.i.i54 = zext i8 %.13.i.i53 to i64
  %.16.i.i55 = shl nuw nsw i64 %.14.i.i54, 16
  %.19.i.i56 = getelementptr i8, ptr %.6.i.i.i, i64 25
  %.20.i.i57 = load i8, ptr %.19.i.i56, align 1
  %.21.i.i58 = zext i8 %.20.i.i57 to i64
  %.23.i.i59 = shl nuw nsw i64 %.21.i.i58, 8
  %.26.i.i60 = getelementptr i8, ptr %.6.i.i.i, i64 26
  %.27.i.i61 = load i8, ptr %.26.i.i60, align 1
  %.28.i.i62 = zext i8 %.27.i.i61 to i64
  %6 = or i64 %.16.i.i55, %.10.i.i51
  %.17.i.i63 = or i64 %6, %.28.i.i62
  %.30.i.i64 = or i64 %.17.i.i63, %.23.i.i59
  %.37.i65 = icmp slt i8 %.7.i.i49, 0
  %.40.i66 = or i64 %.30.i.i64, %const
  %"$phi60.0.2.0.i67" = select i1 %.37.i65, i64 %.40.i66, i64 %.30.i.i64
  %.6.i.i.i68 = getelementptr i8, ptr %.6.i.i.i, i64 27
  %.7.i.i.i69 = load i8, ptr %.6.i.i.i68, align 1
  %.8.i.i.i70 = zext i8 %.7.i.i.i69 to i64
  %.10.i.i.i71 = shl nuw nsw i64 %.8.i.i.i70, 24
  %.12.i.i.i72 = getelementptr i8, ptr %.6.i.i.i, i64 28
  %.13.i.i.i73 = load i8, ptr %.12.i.i.i72, align 1
  %.14.i.i.i74 = zext i8 %.13.i.i.i73 to i64
  %.16.i.i.i75 = shl nuw nsw i64 %.14.i.i.i74, 16
  %.19.i.i.i76 = getelementptr i8, ptr %.6.i.i.i, i64 29
  %.20.i.i.i77 = load i8, ptr %.19.i.i.i76, align 1
  %.21.i.i.i78 = zext i8 %.20.i.i.i77 to i64
  %.26.i.i.i79 = getelementptr i8, ptr %.6.i.i.i, i64 30
  %.27.i.i.i80 = load i8, ptr %.26.i.i.i79, align 1
  %.28.i.i.i81 = zext i8 %.27.i.i.i80 to i64
  %7 = or i64 %.16.i.i.i75, %.10.i.i.i71
  %.17.i.i.i82 = or i64 %7, %.28.i.i.i81
  %.6.i.i83 = getelementptr i8, ptr %.6.i.i.i, i64 31
  %.7.i.i84 = load i8, ptr %.6.i.i83, align 1
  %.8.i.i85 = zext i8 %.7.i.i84 to i64
  %.10.i.i86 = shl nuw nsw i64 %.8.i.i85, 24
  %.12.i.i87 = getelementptr i8, ptr %.6.i.i.i, i64 32
  %.13.i.i88 = load i8, ptr %.12.i.i87, align 1
  %.14.i.i89 = zext i8 %.13.i.i88 to i64
  %.16.i.i90 = shl nuw nsw i64 %.14.i.i89, 16
  %.19.i.i91 = getelementptr i8, ptr %.6.i.i.i, i64 33
  %.20.i.i92 = load i8, ptr %.19.i.i91, align 1
  %.21.i.i93 = zext i8 %.20.i.i92 to i64
  %.23.i.i94 = shl nuw nsw i64 %.21.i.i93, 8
  %.26.i.i95 = getelementptr i8, ptr %.6.i.i.i, i64 34
  %.27.i.i96 = load i8, ptr %.26.i.i95, align 1
  %.28.i.i97 = zext i8 %.27.i.i96 to i64
  %8 = shl nuw nsw i64 %.21.i.i.i78, 40
  %9 = shl nuw i64 %.17.i.i.i82, 32
  %.17.i.i98 = or i64 %9, %8
  %.24.i.i99 = or i64 %.17.i.i98, %.10.i.i86
  %.30.i.i100 = or i64 %.24.i.i99, %.16.i.i90
  %10 = or i64 %.30.i.i100, %.23.i.i94
  %.60.i101 = or i64 %10, %.28.i.i97
  %.219 = getelementptr i8, ptr %arg.numbers, i64 168
  store i64 %"$phi60.0.2.0.i67", ptr %.219, align 8
  %.222 = getelementptr i8, ptr %arg.numbers, i64 176
  store i64 %.60.i101, ptr %.222, align 8
  %.6.i.i.i102 = getelementptr i8, ptr %.6.i.i.i, i64 35
  %.7.i.i.i103 = load i8, ptr %.6.i.i.i102, align 1
  %.8.i.i.i104 = zext i8 %.7.i.i.i103 to i64
  %.10.i.i.i105 = shl nuw nsw i64 %.8.i.i.i104, 24
  %.12.i.i.i106 = getelementptr i8, ptr %.6.i.i.i, i64 36
  %.13.i.i.i107 = load i8, ptr %.12.i.i.i106, align 1
  %.14.i.i.i108 = zext i8 %.13.i.i.i107 to i64
  %.16.i.i.i109 = shl nuw nsw i64 %.14.i.i.i108, 16
  %.19.i.i.i110 = getelementptr i8, ptr %.6.i.i.i, i64 37
  %.20.i.i.i111 = load i8, ptr %.19.i.i.i110, align 1
  %.21.i.i.i112 = zext i8 %.20.i.i.i111 to i64
  %.26.i.i.i113 = getelementptr i8, ptr %.6.i.i.i, i64 38
  %.27.i.i.i114 = load i8, ptr %.26.i.i.i113, align 1
  %.28.i.i.i115 = zext i8 %.27.i.i.i114 to i64
  %11 = or i64 %.16.i.i.i109, %.10.i.i.i105
  %.17.i.i.i116 = or i64 %11, %.28.i.i.i115
  %.6.i.i117 = getelementptr i8, ptr %.6.i.i.i, i64 39
  %.7.i.i118 = load i8, ptr %.6.i.i117, align 1
  %.8.i.i119 = zext i8 %.7.i.i118 to i64
  %.10.i.i120 = shl nuw nsw i64 %.8.i.i119, 24
  %.12.i.i121 = getelementptr i8, ptr %.6.i.i.i, i64 40
  %.13.i.i122 = load i8, ptr %.12.i.i121, align 1
  %.14.i.i123 = zext i8 %.13.i.i122 to i64
  %.16.i.i124 = shl nuw nsw i64 %.14.i.i123, 16
  %.19.i.i125 = getelementptr i8, ptr %.6.i.i.i, i64 41
  %.20.i.i126 = load i8, ptr %.19.i.i125, align 1
  %.21.i.i127 = zext i8 %.20.i.i126 to i64
  %.23.i.i128 = shl nuw nsw i64 %.21.i.i127, 8
  %.26.i.i129 = getelementptr i8, ptr %.6.i.i.i, i64 42
  %.27.i.i130 = load i8, ptr %.26.i.i129, align 1
  %.28.i.i131 = zext i8 %.27.i.i130 to i64
  %12 = shl nuw nsw i64 %.21.i.i.i112, 40
  %13 = shl nuw i64 %.17.i.i.i116, 32
  %.17.i.i132 = or i64 %13, %12
  %.24.i.i133 = or i64 %.17.i.i132, %.10.i.i120
  %.30.i.i134 = or i64 %.24.i.i133, %.16.i.i124
  %14 = or i64 %.30.i.i134, %.23.i.i128
  %.60.i135 = or i64 %14, %.28.i.i131
  %.6.i.i.i136 = getelementptr i8, ptr %.6.i.i.i, i64 43
  %.7.i.i.i137 = load i8, ptr %.6.i.i.i136, align 1
  %.8.i.i.i138 = zext i8 %.7.i.i.i137 to i64
  %.10.i.i.i139 = shl nuw nsw i64 %.8.i.i.i138, 24
  %.12.i.i.i140 = getelementptr i8, ptr %.6.i.i.i, i64 44
  %.13.i.i.i141 = load i8, ptr %.12.i.i.i140, align 1
  %.14.i.i.i142 = zext i8 %.13.i.i.i141 to i64
  %.16.i.i.i143 = shl nuw nsw i64 %.14.i.i.i142, 16
  %.19.i.i.i144 = getelementptr i8, ptr %.6.i.i.i, i64 45
  %.20.i.i.i145 = load i8, ptr %.19.i.i.i144, align 1
  %.21.i.i.i146 = zext i8 %.20.i.i.i145 to i64
  %.26.i.i.i147 = getelementptr i8, ptr %.6.i.i.i, i64 46
  %.27.i.i.i148 = load i8, ptr %.26.i.i.i147, align 1
  %.28.i.i.i149 = zext i8 %.27.i.i.i148 to i64
  %15 = or i64 %.16.i.i.i143, %.10.i.i.i139
  %.17.i.i.i150 = or i64 %15, %.28.i.i.i149
  %.6.i.i151 = getelementptr i8, ptr %.6.i.i.i, i64 47
  %.7.i.i152 = load i8, ptr %.6.i.i151, align 1
  %.8.i.i153 = zext i8 %.7.i.i152 to i64
  %.10.i.i154 = shl nuw nsw i64 %.8.i.i153, 24
  %.12.i.i155 = getelementptr i8, ptr %.6.i.i.i, i64 48
  %.13.i.i156 = load i8, ptr %.12.i.i155, align 1
  %.14.i.i157 = zext i8 %.13.i.i156 to i64
  %.16.i.i158 = shl nuw nsw i64 %.14.i.i157, 16
  %.19.i.i159 = getelementptr i8, ptr %.6.i.i.i, i64 49
  %.20.i.i160 = load i8, ptr %.19.i.i159, align 1
  %.21.i.i161 = zext i8 %.20.i.i160 to i64
  %.23.i.i162 = shl nuw nsw i64 %.21.i.i161, 8
  %.26.i.i163 = getelementptr i8, ptr %.6.i.i.i, i64 50
  %.27.i.i164 = load i8, ptr %.26.i.i163, align 1
  %.28.i.i165 = zext i8 %.27.i.i164 to i64
  %16 = shl nuw nsw i64 %.21.i.i.i146, 40
  %17 = shl nuw i64 %.17.i.i.i150, 32
  %18 = or i64 %.10.i.i154, %16
  %19 = or i64 %18, %.16.i.i158
  %20 = or i64 %19, %.28.i.i165
  %21 = or i64 %20, %.23.i.i162
  %.60.i169 = or i64 %21, %17
  %.277 = getelementptr i8, ptr %arg.numbers, i64 184
  store i64 %.60.i135, ptr %.277, align 8
  %.280 = getelementptr i8, ptr %arg.numbers, i64 192
  store i64 %.60.i169, ptr %.280, align 8
  %.6.i170 = getelementptr i8, ptr %.6.i.i.i, i64 51
  %.7.i171 = load i8, ptr %.6.i170, align 1
  %.8.i172 = zext i8 %.7.i171 to i64
  %.10.i173 = shl nuw nsw i64 %.8.i172, 8
  %.12.i174 = getelementptr i8, ptr %.6.i.i.i, i64 52
  %.13.i175 = load i8, ptr %.12.i174, align 1
  %.14.i176 = zext i8 %.13.i175 to i64
  %.16.i177 = or i64 %.10.i173, %.14.i176
  %.21.i178 = icmp slt i8 %.7.i171, 0
  %.24.i179 = or i64 %.16.i177, -65536
  %spec.select.i180 = select i1 %.21.i178, i64 %.24.i179, i64 %.16.i177
  %.6.i.i181 = getelementptr i8, ptr %.6.i.i.i, i64 53
  %.7.i.i182 = load i8, ptr %.6.i.i181, align 1
  %.8.i.i183 = zext i8 %.7.i.i182 to i64
  %.10.i.i184 = shl nuw nsw i64 %.8.i.i183, 24
  %.12.i.i185 = getelementptr i8, ptr %.6.i.i.i, i64 54
  %.13.i.i186 = load i8, ptr %.12.i.i185, align 1
  %.14.i.i187 = zext i8 %.13.i.i186 to i64
  %.16.i.i188 = shl nuw nsw i64 %.14.i.i187, 16
  %.19.i.i189 = getelementptr i8, ptr %.6.i.i.i, i64 55
  %.20.i.i190 = load i8, ptr %.19.i.i189, align 1
  %.21.i.i191 = zext i8 %.20.i.i190 to i64
  %.23.i.i192 = shl nuw nsw i64 %.21.i.i191, 8
  %.26.i.i193 = getelementptr i8, ptr %.6.i.i.i, i64 56
  %.27.i.i194 = load i8, ptr %.26.i.i193, align 1
  %.28.i.i195 = zext i8 %.27.i.i194 to i64
  %22 = or i64 %.16.i.i188, %.10.i.i184
  %.17.i.i196 = or i64 %22, %.28.i.i195
  %.30.i.i197 = or i64 %.17.i.i196, %.23.i.i192
  %.37.i198 = icmp slt i8 %.7.i.i182, 0
  %.40.i199 = or i64 %.30.i.i197, %const
  %"$phi60.0.2.0.i200" = select i1 %.37.i198, i64 %.40.i199, i64 %.30.i.i197
  %.335 = getelementptr i8, ptr %arg.numbers, i64 200
  store i64 %spec.select.i180, ptr %.335, align 8
  %.338 = getelementptr i8, ptr %arg.numbers, i64 208
  store i64 %"$phi60.0.2.0.i200", ptr %.338, align 8
  %.6.i.i201 = getelementptr i8, ptr %.6.i.i.i, i64 57
  %.7.i.i202 = load i8, ptr %.6.i.i201, align 1
  %.8.i.i203 = zext i8 %.7.i.i202 to i64
  %.10.i.i204 = shl nuw nsw i64 %.8.i.i203, 24
  %.12.i.i205 = getelementptr i8, ptr %.6.i.i.i, i64 58
  %.13.i.i206 = load i8, ptr %.12.i.i205, align 1
  %.14.i.i207 = zext i8 %.13.i.i206 to i64
  %.16.i.i208 = shl nuw nsw i64 %.14.i.i207, 16
  %.19.i.i209 = getelementptr i8, ptr %.6.i.i.i, i64 59
  %.20.i.i210 = load i8, ptr %.19.i.i209, align 1
  %.21.i.i211 = zext i8 %.20.i.i210 to i64
  %.23.i.i212 = shl nuw nsw i64 %.21.i.i211, 8
  %.26.i.i213 = getelementptr i8, ptr %.6.i.i.i, i64 60
  %.27.i.i214 = load i8, ptr %.26.i.i213, align 1
  %.28.i.i215 = zext i8 %.27.i.i214 to i64
  %23 = or i64 %.16.i.i208, %.10.i.i204
  %.17.i.i216 = or i64 %23, %.28.i.i215
  %.30.i.i217 = or i64 %.17.i.i216, %.23.i.i212
  %.37.i218 = icmp slt i8 %.7.i.i202, 0
  %.40.i219 = or i64 %.30.i.i217, %const
  %"$phi60.0.2.0.i220" = select i1 %.37.i218, i64 %.40.i219, i64 %.30.i.i217
  %.371 = getelementptr i8, ptr %arg.numbers, i64 216
  store i64 %"$phi60.0.2.0.i220", ptr %.371, align 8
  %.376 = icmp sgt i64 %spec.select.i180, -1
  %.384 = icmp sgt i64 %"$phi60.0.2.0.i200", -1
  %spec.select221 = select i1 %.376, i1 %.384, i1 false
  %.397 = icmp eq i64 %.60.i, 0
  %.406 = add nsw i64 %arg.size, -12
  %.407 = icmp eq i64 %"$phi60.0.2.0.i", %.406
  %or.cond222 = select i1 %.397, i1 %.407, i1 false
  %.414 = icmp eq i8 %.99, 2
  %or.cond223 = select i1 %or.cond222, i1 %.414, i1 false
  br i1 %or.cond223, label %B882, label %common.ret

B882:
  %.421 = icmp eq i64 %spec.select.i, 0
  %.426 = icmp sgt i64 %"$phi60.0.2.0.i220", 0
  %or.cond = select i1 %.421, i1 %.426, i1 false
  br i1 %or.cond, label %B928, label %common.ret

B928:
  %.431 = mul nuw nsw i64 %"$phi60.0.2.0.i220", 7
  %.433 = add nsw i64 %arg.size, -61
  %.436.not = icmp sle i64 %.431, %.433
  %.444 = add nsw i64 %"$phi60.0.2.0.i220", -1
  %.447 = icmp eq i64 %"$phi60.0.2.0.i67", %.444
  %or.cond224 = select i1 %.436.not, i1 %.447, i1 false
  br i1 %or.cond224, label %B1002, label %common.ret

B1002:
  %.456 = icmp slt i64 %17, 0
  %spec.select = select i1 %.456, i1 true, i1 %spec.select221
  %24 = zext i1 %spec.select to i8
  br label %common.ret

common.ret:
  %"$phi1038.0.9.0" = phi i8 [ %24, %B1002 ], [ 0, %B882 ], [ 0, %B0.endif.endif.endif.endi...endif.1.endif.endif ], [ 0, %B928 ]
  store i8 %"$phi1038.0.9.0", ptr %retptr, align 1
  ret i32 0
}

define internal i32 @compiled_body(ptr %retptr, ptr %excinfo, ptr %arg.data, i64 %arg.at, i64 %arg.size, i64 %arg.version, ptr %arg.numbers) {
B0:
  %.508 = alloca [2 x i64], align 8
  %excinfo.9 = alloca ptr, align 8
  %.20 = icmp slt i64 %arg.version, 9
  %.6.i = getelementptr i8, ptr %arg.data, i64 %arg.at
  %.7.i = load i8, ptr %.6.i, align 1
  %.8.i = zext i8 %.7.i to i64
  br i1 %.20, label %B100.endif, label %B30

B30:
  %0 = trunc i64 %.8.i to i8
  %.31.not = icmp eq i8 %0, 0
  br i1 %.31.not, label %B54, label %B84

B54:
  %sunkaddr = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr1 = getelementptr i8, ptr %sunkaddr, i64 1
  %.37 = load i8, ptr %sunkaddr1, align 1
  %.39.not = icmp eq i8 %.37, 0
  br i1 %.39.not, label %B154.endif, label %B84

common.ret:
  %common.ret.op = phi i32 [ 0, %B84 ], [ 0, %B140 ], [ 0, %B210 ], [ 0, %B346 ], [ 0, %B518 ], [ 0, %B592 ], [ 0, %B642 ], [ 0, %B864 ], [ 0, %B956 ], [ 0, %B960 ], [ %.512, %B708.if.if ]
  ret i32 %common.ret.op

B84:
  store i64 -1, ptr %retptr, align 8
  br label %common.ret

B140:
  store i64 -1, ptr %retptr, align 8
  br label %common.ret

B210:
  store i64 -1, ptr %retptr, align 8
  br label %common.ret

B346:
  store i64 -1, ptr %retptr, align 8
  br label %common.ret

B350:
  %.257 = icmp sgt i64 %arg.version, 12
  br i1 %.257, label %B500, label %B378

B378:
  %1 = icmp slt i64 %arg.version, 9
  br i1 %1, label %B434.endif, label %B382

B382:
  %.22.i = icmp slt i64 %"$phi98.0.2.0.i74", %arg.size
  br i1 %.22.i, label %B36.i, label %B518

B36.i:
  %.48.i = getelementptr i8, ptr %arg.data, i64 %"$phi98.0.2.0.i74"
  %.49.i = load i8, ptr %.48.i, align 1
  %promoted = zext i8 %.49.i to i64
  %.53.i = add nuw nsw i64 %"$phi98.0.2.0.i74", 1
  %2 = and i64 %promoted, 127
  %.69.i = icmp sgt i8 %.49.i, -1
  br i1 %.69.i, label %B488, label %B110.i

B110.i:
  %.102.i = icmp ult i64 %.53.i, %arg.size
  br i1 %.102.i, label %B36.1.i, label %B518

B36.1.i:
  %sunkaddr2 = getelementptr i8, ptr %arg.data, i64 %"$phi98.0.2.0.i74"
  %sunkaddr3 = getelementptr i8, ptr %sunkaddr2, i64 1
  %.49.1.i = load i8, ptr %sunkaddr3, align 1
  %promoted4 = zext i8 %.49.1.i to i64
  %.53.1.i = add nuw nsw i64 %"$phi98.0.2.0.i74", 2
  %3 = and i64 %promoted4, 127
  %.61.1.i = shl nuw nsw i64 %3, 7
  %.63.1.i = or i64 %.61.1.i, %2
  %.69.1.i = icmp sgt i8 %.49.1.i, -1
  br i1 %.69.1.i, label %B488, label %B110.1.i

B110.1.i:
  %.102.1.i = icmp ult i64 %.53.1.i, %arg.size
  br i1 %.102.1.i, label %B36.2.i, label %B518

B36.2.i:
  %sunkaddr5 = getelementptr i8, ptr %arg.data, i64 %"$phi98.0.2.0.i74"
  %sunkaddr6 = getelementptr i8, ptr %sunkaddr5, i64 2
  %.49.2.i = load i8, ptr %sunkaddr6, align 1
  %promoted7 = zext i8 %.49.2.i to i64
  %.53.2.i = add nuw nsw i64 %"$phi98.0.2.0.i74", 3
  %4 = and i64 %promoted7, 127
  %.61.2.i = shl nuw nsw i64 %4, 14
  %.63.2.i = or i64 %.61.2.i, %.63.1.i
  %.69.2.i = icmp sgt i8 %.49.2.i, -1
  br i1 %.69.2.i, label %B488, label %B518

B488:
  %.sink53.i = phi i64 [ %.63.1.i, %B36.1.i ], [ %2, %B36.i ], [ %.63.2.i, %B36.2.i ]
  %.sink.i = phi i64 [ %.53.1.i, %B36.1.i ], [ %.53.i, %B36.i ], [ %.53.2.i, %B36.2.i ]
  %5 = tail call { i64, i1 } @llvm.usub.with.overflow.i64(i64 %.sink53.i, i64 1)
  %math = extractvalue { i64, i1 } %5, 0
  %ov = extractvalue { i64, i1 } %5, 1
  br i1 %ov, label %B518, label %B500

B500:
  %at.13.0126132 = phi i64 [ %.sink.i, %B488 ], [ %.82.i73, %B350 ], [ %.347, %B434.endif ]
  %name.4.0127131 = phi i64 [ %math, %B488 ], [ 16, %B350 ], [ %.16.i20, %B434.endif ]
  %.361 = sub nsw i64 %arg.size, %at.13.0126132
  %.363 = icmp sgt i64 %name.4.0127131, %.361
  br i1 %.363, label %B518, label %B522

B518:
  store i64 -1, ptr %retptr, align 8
  br label %common.ret

B522:
  %.381 = getelementptr i8, ptr %arg.numbers, i64 80
  store i64 %at.13.0126132, ptr %.381, align 8
  %.385 = getelementptr i8, ptr %arg.numbers, i64 88
  store i64 %name.4.0127131, ptr %.385, align 8
  %.389 = add nuw nsw i64 %name.4.0127131, %at.13.0126132
  %.399 = sub nsw i64 %arg.size, %.389
  %.400 = icmp slt i64 %.399, 12
  br i1 %.400, label %B592, label %B596

B592:
  store i64 -1, ptr %retptr, align 8
  br label %common.ret

B596:
  %6 = icmp slt i64 %arg.version, 9
  %.6.i.i.i = getelementptr i8, ptr %arg.data, i64 %.389
  %.7.i.i.i = load i8, ptr %.6.i.i.i, align 1
  %.8.i.i.i = zext i8 %.7.i.i.i to i64
  br i1 %6, label %B46.endif.i, label %B8.i

B8.i:
  %7 = trunc i64 %.8.i.i.i to i8
  %.28.i = icmp eq i8 %7, 2
  br label %B596.endif

B46.endif.i:
  %8 = trunc i64 %.8.i.i.i to i8
  %.10.i.i.i = shl nuw nsw i64 %.8.i.i.i, 24
  %sunkaddr8 = getelementptr i8, ptr %arg.data, i64 %.389
  %sunkaddr9 = getelementptr i8, ptr %sunkaddr8, i64 1
  %.13.i.i.i = load i8, ptr %sunkaddr9, align 1
  %.14.i.i.i = zext i8 %.13.i.i.i to i64
  %.16.i.i.i = shl nuw nsw i64 %.14.i.i.i, 16
  %sunkaddr10 = getelementptr i8, ptr %arg.data, i64 %.389
  %sunkaddr11 = getelementptr i8, ptr %sunkaddr10, i64 2
  %.20.i.i.i = load i8, ptr %sunkaddr11, align 1
  %.21.i.i.i = zext i8 %.20.i.i.i to i64
  %.23.i.i.i = shl nuw nsw i64 %.21.i.i.i, 8
  %sunkaddr12 = getelementptr i8, ptr %arg.data, i64 %.389
  %sunkaddr13 = getelementptr i8, ptr %sunkaddr12, i64 3
  %.27.i.i.i = load i8, ptr %sunkaddr13, align 1
  %.28.i.i.i = zext i8 %.27.i.i.i to i64
  %9 = or i64 %.16.i.i.i, %.10.i.i.i
  %.17.i.i.i = or i64 %9, %.28.i.i.i
  %.30.i.i.i = or i64 %.17.i.i.i, %.23.i.i.i
  %.37.i.i = icmp sgt i8 %8, -1
  %.791.i = icmp eq i64 %.30.i.i.i, 1
  %.79.i = select i1 %.37.i.i, i1 %.791.i, i1 false
  br label %B596.endif

B642:
  store i64 -1, ptr %retptr, align 8
  br label %common.ret

B708:
  %.494 = add nuw nsw i64 %"$phi98.0.2.0.i", 4
  call void @llvm.memset.p0.i64(ptr align 8 dereferenceable(16) %.508, i8 0, i64 16, i1 false)
  %.512 = call i32 @compiled_small_uvarint(ptr %.508, ptr %excinfo.9, ptr %arg.data, i64 %.494, i64 %arg.size)
  %sunkaddr123 = getelementptr i8, ptr %.508, i64 8
  %.522.fca.1.load = load i64, ptr %sunkaddr123, align 8
  switch i32 %.512, label %B708.if.if [
    i32 -2, label %B708.endif
    i32 0, label %B708.endif
  ]

B780:
  %.561 = getelementptr i8, ptr %arg.data, i64 %.550
  %.562 = load i8, ptr %.561, align 1
  %.564.not = icmp eq i8 %.562, 0
  br i1 %.564.not, label %B804, label %B864

B804:
  %10 = getelementptr i8, ptr %arg.data, i64 %arg.size
  %.569 = getelementptr i8, ptr %10, i64 -2
  %.570 = load i8, ptr %.569, align 1
  %.572.not = icmp eq i8 %.570, 0
  br i1 %.572.not, label %B834, label %B864

B834:
  %sunkaddr14 = getelementptr i8, ptr %arg.data, i64 %arg.size
  %sunkaddr15 = getelementptr i8, ptr %sunkaddr14, i64 -1
  %.578 = load i8, ptr %sunkaddr15, align 1
  %.582.not = icmp eq i8 %.578, 0
  br i1 %.582.not, label %B916, label %B864

B864:
  store i64 -1, ptr %retptr, align 8
  br label %common.ret

B916:
  %at.14.0 = phi i64 [ %.647, %B870.endif ], [ %.522.fca.1.load, %B834 ]
  %records.3.0 = phi i64 [ %"$phi60.0.2.0.i65", %B870.endif ], [ %.545, %B834 ]
  %end.2.0 = phi i64 [ %arg.size, %B870.endif ], [ %.550, %B834 ]
  %.659 = icmp slt i64 %records.3.0, 61
  %.663 = sub nsw i64 %end.2.0, %at.14.0
  %.665 = icmp ne i64 %records.3.0, %.663
  %or.cond = select i1 %.659, i1 true, i1 %.665
  br i1 %or.cond, label %B956, label %B960

B956:
  store i64 -1, ptr %retptr, align 8
  br label %common.ret

B960:
  %.679 = getelementptr i8, ptr %arg.numbers, i64 104
  store i64 %at.14.0, ptr %.679, align 8
  %.685 = getelementptr i8, ptr %arg.numbers, i64 112
  store i64 %end.2.0, ptr %.685, align 8
  store i64 %records.3.0, ptr %retptr, align 8
  br label %common.ret

B100.endif:
  %11 = trunc i64 %.8.i to i8
  %.10.i = shl nuw nsw i64 %.8.i, 8
  %sunkaddr16 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr17 = getelementptr i8, ptr %sunkaddr16, i64 1
  %.13.i = load i8, ptr %sunkaddr17, align 1
  %.14.i = zext i8 %.13.i to i64
  %.16.i = or i64 %.10.i, %.14.i
  %.21.i = icmp slt i8 %11, 0
  %.92.not109 = icmp eq i64 %.16.i, 65535
  %.92.not = select i1 %.21.i, i1 %.92.not109, i1 false
  br i1 %.92.not, label %B154.endif, label %B140

B154.endif:
  %sunkaddr18 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr19 = getelementptr i8, ptr %sunkaddr18, i64 2
  %.7.i2 = load i8, ptr %sunkaddr19, align 1
  %.8.i3 = zext i8 %.7.i2 to i64
  %.10.i4 = shl nuw nsw i64 %.8.i3, 8
  %sunkaddr20 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr21 = getelementptr i8, ptr %sunkaddr20, i64 3
  %.13.i6 = load i8, ptr %sunkaddr21, align 1
  %.14.i7 = zext i8 %.13.i6 to i64
  %.16.i8 = or i64 %.10.i4, %.14.i7
  %.21.i9 = icmp slt i8 %.7.i2, 0
  %.24.i10 = or i64 %.16.i8, -65536
  %spec.select.i11 = select i1 %.21.i9, i64 %.24.i10, i64 %.16.i8
  switch i64 %spec.select.i11, label %B210 [
    i64 -1, label %B214.endif
    i64 1, label %B214.endif
  ]

B214.endif:
  %12 = icmp slt i64 %arg.version, 9
  %const = bitcast i64 -4294967296 to i64
  %sunkaddr22 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr23 = getelementptr i8, ptr %sunkaddr22, i64 4
  %.7.i.i = load i8, ptr %sunkaddr23, align 1
  %.8.i.i = zext i8 %.7.i.i to i64
  %.10.i.i = shl nuw nsw i64 %.8.i.i, 24
  %sunkaddr24 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr25 = getelementptr i8, ptr %sunkaddr24, i64 5
  %.13.i.i = load i8, ptr %sunkaddr25, align 1
  %.14.i.i = zext i8 %.13.i.i to i64
  %.16.i.i = shl nuw nsw i64 %.14.i.i, 16
  %sunkaddr26 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr27 = getelementptr i8, ptr %sunkaddr26, i64 6
  %.20.i.i = load i8, ptr %sunkaddr27, align 1
  %.21.i.i = zext i8 %.20.i.i to i64
  %.23.i.i = shl nuw nsw i64 %.21.i.i, 8
  %sunkaddr28 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr29 = getelementptr i8, ptr %sunkaddr28, i64 7
  %.27.i.i = load i8, ptr %sunkaddr29, align 1
  %.28.i.i = zext i8 %.27.i.i to i64
  %13 = or i64 %.16.i.i, %.10.i.i
  %.17.i.i = or i64 %13, %.28.i.i
  %.30.i.i = or i64 %.17.i.i, %.23.i.i
  %.37.i = icmp slt i8 %.7.i.i, 0
  %.40.i = or i64 %.30.i.i, %const
  %"$phi60.0.2.0.i" = select i1 %.37.i, i64 %.40.i, i64 %.30.i.i
  %.197 = getelementptr i8, ptr %arg.numbers, i64 64
  store i64 %spec.select.i11, ptr %.197, align 8
  %.202 = getelementptr i8, ptr %arg.numbers, i64 72
  store i64 %"$phi60.0.2.0.i", ptr %.202, align 8
  %.205 = add nsw i64 %arg.at, 8
  %.6.i.i.i67 = getelementptr i8, ptr %arg.data, i64 %.205
  %.7.i.i.i68 = load i8, ptr %.6.i.i.i67, align 1
  %.8.i.i.i76 = zext i8 %.7.i.i.i68 to i64
  br i1 %12, label %B46.endif.i75, label %B8.i69

B8.i69:
  %14 = trunc i64 %.8.i.i.i76 to i8
  %.28.i70 = icmp eq i8 %14, 2
  br label %B214.endif.endif

B46.endif.i75:
  %15 = trunc i64 %.8.i.i.i76 to i8
  %.10.i.i.i77 = shl nuw nsw i64 %.8.i.i.i76, 24
  %sunkaddr30 = getelementptr i8, ptr %arg.data, i64 %.205
  %sunkaddr31 = getelementptr i8, ptr %sunkaddr30, i64 1
  %.13.i.i.i79 = load i8, ptr %sunkaddr31, align 1
  %.14.i.i.i80 = zext i8 %.13.i.i.i79 to i64
  %.16.i.i.i81 = shl nuw nsw i64 %.14.i.i.i80, 16
  %sunkaddr32 = getelementptr i8, ptr %arg.data, i64 %.205
  %sunkaddr33 = getelementptr i8, ptr %sunkaddr32, i64 2
  %.20.i.i.i83 = load i8, ptr %sunkaddr33, align 1
  %.21.i.i.i84 = zext i8 %.20.i.i.i83 to i64
  %.23.i.i.i85 = shl nuw nsw i64 %.21.i.i.i84, 8
  %sunkaddr34 = getelementptr i8, ptr %arg.data, i64 %.205
  %sunkaddr35 = getelementptr i8, ptr %sunkaddr34, i64 3
  %.27.i.i.i87 = load i8, ptr %sunkaddr35, align 1
  %.28.i.i.i88 = zext i8 %.27.i.i.i87 to i64
  %16 = or i64 %.16.i.i.i81, %.10.i.i.i77
  %.17.i.i.i89 = or i64 %16, %.28.i.i.i88
  %.30.i.i.i90 = or i64 %.17.i.i.i89, %.23.i.i.i85
  %.37.i.i91 = icmp sgt i8 %15, -1
  %.791.i92 = icmp eq i64 %.30.i.i.i90, 1
  %.79.i93 = select i1 %.37.i.i91, i1 %.791.i92, i1 false
  br label %B214.endif.endif

B214.endif.endif:
  %.sink.i71 = phi i64 [ 4, %B46.endif.i75 ], [ 1, %B8.i69 ]
  %.79.sink.i72 = phi i1 [ %.79.i93, %B46.endif.i75 ], [ %.28.i70, %B8.i69 ]
  %.82.i73 = add nsw i64 %.sink.i71, %.205
  %"$phi98.0.2.0.i74" = select i1 %.79.sink.i72, i64 %.82.i73, i64 -1
  %.240 = icmp slt i64 %"$phi98.0.2.0.i74", 0
  br i1 %.240, label %B346, label %B350

B434.endif:
  %.6.i13 = getelementptr i8, ptr %arg.data, i64 %"$phi98.0.2.0.i74"
  %.7.i14 = load i8, ptr %.6.i13, align 1
  %.8.i15 = zext i8 %.7.i14 to i64
  %.10.i16 = shl nuw nsw i64 %.8.i15, 8
  %.12.i17 = getelementptr i8, ptr %.6.i13, i64 1
  %.13.i18 = load i8, ptr %.12.i17, align 1
  %.14.i19 = zext i8 %.13.i18 to i64
  %.16.i20 = or i64 %.10.i16, %.14.i19
  %.21.i21 = icmp slt i8 %.7.i14, 0
  %.347 = add nuw nsw i64 %"$phi98.0.2.0.i74", 2
  br i1 %.21.i21, label %B518, label %B500

B596.endif:
  %.sink.i24 = phi i64 [ 4, %B46.endif.i ], [ 1, %B8.i ]
  %.79.sink.i = phi i1 [ %.79.i, %B46.endif.i ], [ %.28.i, %B8.i ]
  %.82.i = add nuw nsw i64 %.sink.i24, %.389
  %"$phi98.0.2.0.i" = select i1 %.79.sink.i, i64 %.82.i, i64 -1
  %.449 = icmp slt i64 %"$phi98.0.2.0.i", 0
  br i1 %.449, label %B642, label %B646.endif

B646.endif:
  %17 = icmp slt i64 %arg.version, 9
  %.6.i.i26 = getelementptr i8, ptr %arg.data, i64 %"$phi98.0.2.0.i"
  %.7.i.i27 = load i8, ptr %.6.i.i26, align 1
  %.8.i.i28 = zext i8 %.7.i.i27 to i64
  %.10.i.i29 = shl nuw nsw i64 %.8.i.i28, 24
  %.12.i.i30 = getelementptr i8, ptr %.6.i.i26, i64 1
  %.13.i.i31 = load i8, ptr %.12.i.i30, align 1
  %.14.i.i32 = zext i8 %.13.i.i31 to i64
  %.16.i.i33 = shl nuw nsw i64 %.14.i.i32, 16
  %.19.i.i34 = getelementptr i8, ptr %.6.i.i26, i64 2
  %.20.i.i35 = load i8, ptr %.19.i.i34, align 1
  %.21.i.i36 = zext i8 %.20.i.i35 to i64
  %.23.i.i37 = shl nuw nsw i64 %.21.i.i36, 8
  %.26.i.i38 = getelementptr i8, ptr %.6.i.i26, i64 3
  %.27.i.i39 = load i8, ptr %.26.i.i38, align 1
  %.28.i.i40 = zext i8 %.27.i.i39 to i64
  %18 = or i64 %.16.i.i33, %.10.i.i29
  %.17.i.i41 = or i64 %18, %.28.i.i40
  %.30.i.i42 = or i64 %.17.i.i41, %.23.i.i37
  %.37.i43 = icmp slt i8 %.7.i.i27, 0
  %.40.i44 = or i64 %.30.i.i42, %const
  %"$phi60.0.2.0.i45" = select i1 %.37.i43, i64 %.40.i44, i64 %.30.i.i42
  %.491 = getelementptr i8, ptr %arg.numbers, i64 96
  store i64 %"$phi60.0.2.0.i45", ptr %.491, align 8
  br i1 %17, label %B870.endif, label %B708

B708.endif:
  %.522.fca.0.load = load i64, ptr %.508, align 8
  %.545 = add nsw i64 %.522.fca.0.load, -1
  %.550 = add nsw i64 %arg.size, -3
  %.557 = icmp slt i64 %.522.fca.1.load, 0
  br i1 %.557, label %B864, label %B780

B708.if.if:
  store ptr null, ptr %excinfo, align 8
  br label %common.ret

B870.endif:
  %sunkaddr36 = getelementptr i8, ptr %arg.data, i64 %"$phi98.0.2.0.i"
  %sunkaddr37 = getelementptr i8, ptr %sunkaddr36, i64 4
  %.7.i.i47 = load i8, ptr %sunkaddr37, align 1
  %.8.i.i48 = zext i8 %.7.i.i47 to i64
  %.10.i.i49 = shl nuw nsw i64 %.8.i.i48, 24
  %sunkaddr38 = getelementptr i8, ptr %arg.data, i64 %"$phi98.0.2.0.i"
  %sunkaddr39 = getelementptr i8, ptr %sunkaddr38, i64 5
  %.13.i.i51 = load i8, ptr %sunkaddr39, align 1
  %.14.i.i52 = zext i8 %.13.i.i51 to i64
  %.16.i.i53 = shl nuw nsw i64 %.14.i.i52, 16
  %sunkaddr40 = getelementptr i8, ptr %arg.data, i64 %"$phi98.0.2.0.i"
  %sunkaddr41 = getelementptr i8, ptr %sunkaddr40, i64 6
  %.20.i.i55 = load i8, ptr %sunkaddr41, align 1
  %.21.i.i56 = zext i8 %.20.i.i55 to i64
  %.23.i.i57 = shl nuw nsw i64 %.21.i.i56, 8
  %sunkaddr42 = getelementptr i8, ptr %arg.data, i64 %"$phi98.0.2.0.i"
  %sunkaddr43 = getelementptr i8, ptr %sunkaddr42, i64 7
  %.27.i.i59 = load i8, ptr %sunkaddr43, align 1
  %.28.i.i60 = zext i8 %.27.i.i59 to i64
  %19 = or i64 %.16.i.i53, %.10.i.i49
  %.17.i.i61 = or i64 %19, %.28.i.i60
  %.30.i.i62 = or i64 %.17.i.i61, %.23.i.i57
  %.37.i63 = icmp slt i8 %.7.i.i47, 0
  %.40.i64 = or i64 %.30.i.i62, %const
  %"$phi60.0.2.0.i65" = select i1 %.37.i63, i64 %.40.i64, i64 %.30.i.i62
  %.647 = add nuw nsw i64 %"$phi98.0.2.0.i", 8
  br label %B916
}

define internal i32 @compiled_scan(ptr %retptr, ptr %excinfo, ptr %arg.data, i64 %arg.size, ptr %arg.refused, ptr %arg.numbers) {
B0:
  %.233 = alloca i64, align 8
  %excinfo.5 = alloca ptr, align 8
  store ptr null, ptr %excinfo.5, align 8
  %.290 = alloca i8, align 1
  %excinfo.6 = alloca ptr, align 8
  %.358 = alloca i64, align 8
  %excinfo.7 = alloca ptr, align 8
  store ptr null, ptr %excinfo.7, align 8
  %.17 = icmp slt i64 %arg.size, 10
  br i1 %.17, label %B66, label %B26.endif

common.ret:
  %common.ret.op = phi i32 [ 0, %B66 ], [ 0, %B178 ], [ 0, %B360 ], [ 0, %B414 ], [ 0, %B480 ], [ 0, %B724 ], [ 0, %B728 ], [ %.362, %B484.if.if ], [ %.294, %B418.endif.if.if ], [ %.237, %B364.if.if ]
  ret i32 %common.ret.op

B66:
  store i64 0, ptr %retptr, align 8
  br label %common.ret

B178:
  store i64 0, ptr %retptr, align 8
  br label %common.ret

B360:
  store i64 0, ptr %retptr, align 8
  br label %common.ret

B364:
  store i64 0, ptr %.233, align 8
  %.237 = call i32 @compiled_body(ptr %.233, ptr %excinfo.5, ptr %arg.data, i64 %at.3.0, i64 %arg.size, i64 %spec.select.i10, ptr %arg.numbers)
  %.247 = load i64, ptr %.233, align 8
  %cond = icmp eq i32 %.237, 0
  br i1 %cond, label %B364.endif, label %B364.if.if

B414:
  store i64 0, ptr %retptr, align 8
  br label %common.ret

B418:
  %.280 = getelementptr i8, ptr %arg.numbers, i64 104
  %.281 = load i64, ptr %.280, align 8
  %.294 = call i32 @compiled_has_plain_header(ptr %.290, ptr %excinfo.6, ptr %arg.data, i64 %.281, i64 %.247, ptr %arg.numbers)
  %.304 = load i8, ptr %.290, align 1
  %.307 = icmp eq i8 %.304, 0
  br i1 %.307, label %B418.endif.thread, label %B418.endif

B480:
  store i64 0, ptr %retptr, align 8
  br label %common.ret

B484:
  %.338 = add nsw i64 %.281, 61
  %.341 = add nsw i64 %.281, %.247
  %.347 = getelementptr i8, ptr %arg.numbers, i64 216
  %.348 = load i64, ptr %.347, align 8
  %.350 = getelementptr i8, ptr %arg.numbers, i64 168
  %.351 = load i64, ptr %.350, align 8
  %.353 = getelementptr i8, ptr %arg.numbers, i64 176
  %.354 = load i64, ptr %.353, align 8
  store i64 0, ptr %.358, align 8
  %.362 = call i32 @compiled_check(ptr %.358, ptr %excinfo.7, ptr %arg.data, i64 %.338, i64 %.341, i64 %.348, i64 %.351, i64 %.354, i64 0, i64 0, i64 9223372036854775807, ptr %arg.refused, ptr %arg.numbers)
  %cond24 = icmp eq i32 %.362, 0
  br i1 %cond24, label %B484.endif, label %B484.if.if

B654:
  %.389 = getelementptr i8, ptr %arg.numbers, i64 8
  %.390 = load i64, ptr %.389, align 8
  %.391.not = icmp eq i64 %.390, 0
  br i1 %.391.not, label %B678, label %B724

B678:
  %.395 = load i64, ptr %arg.numbers, align 8
  %.397 = getelementptr i8, ptr %arg.numbers, i64 184
  %.398 = load i64, ptr %.397, align 8
  %.401.not = icmp eq i64 %.395, %.398
  br i1 %.401.not, label %B728, label %B724

B724:
  store i64 0, ptr %retptr, align 8
  br label %common.ret

B728:
  store i64 1, ptr %retptr, align 8
  br label %common.ret

B26.endif:
  %.7.i = load i8, ptr %arg.data, align 1
  %.12.i = getelementptr i8, ptr %arg.data, i64 1
  %.13.i = load i8, ptr %.12.i, align 1
  %.21.i = icmp sgt i8 %.7.i, -1
  %0 = or i8 %.13.i, %.7.i
  %1 = icmp eq i8 %0, 0
  %.47.not = select i1 %.21.i, i1 %1, i1 false
  br i1 %.47.not, label %B70.endif.endif, label %B66

B70.endif.endif:
  %.6.i = getelementptr i8, ptr %arg.data, i64 2
  %.7.i1 = load i8, ptr %.6.i, align 1
  %.8.i2 = zext i8 %.7.i1 to i64
  %.10.i3 = shl nuw nsw i64 %.8.i2, 8
  %.12.i4 = getelementptr i8, ptr %arg.data, i64 3
  %.13.i5 = load i8, ptr %.12.i4, align 1
  %.14.i6 = zext i8 %.13.i5 to i64
  %.16.i7 = or i64 %.10.i3, %.14.i6
  %.21.i8 = icmp slt i8 %.7.i1, 0
  %.24.i9 = or i64 %.16.i7, -65536
  %spec.select.i10 = select i1 %.21.i8, i64 %.24.i9, i64 %.16.i7
  %.6.i11 = getelementptr i8, ptr %arg.data, i64 8
  %.7.i12 = load i8, ptr %.6.i11, align 1
  %.8.i13 = zext i8 %.7.i12 to i64
  %.10.i14 = shl nuw nsw i64 %.8.i13, 8
  %.12.i15 = getelementptr i8, ptr %arg.data, i64 9
  %.13.i16 = load i8, ptr %.12.i15, align 1
  %.14.i17 = zext i8 %.13.i16 to i64
  %.16.i18 = or i64 %.10.i14, %.14.i17
  %.21.i19 = icmp slt i8 %.7.i12, 0
  %.24.i20 = or i64 %.16.i18, -65536
  %spec.select.i21 = select i1 %.21.i19, i64 %.24.i20, i64 %.16.i18
  %.121 = icmp slt i64 %spec.select.i21, -1
  %.125 = add nsw i64 %arg.size, -10
  %.127 = icmp sgt i64 %spec.select.i21, %.125
  %or.cond = select i1 %.121, i1 true, i1 %.127
  br i1 %or.cond, label %B178, label %B182.endif

B182.endif:
  %.6.i.i = getelementptr i8, ptr %arg.data, i64 4
  %.7.i.i = load i8, ptr %.6.i.i, align 1
  %.8.i.i = zext i8 %.7.i.i to i64
  %.10.i.i = shl nuw nsw i64 %.8.i.i, 24
  %.12.i.i = getelementptr i8, ptr %arg.data, i64 5
  %.13.i.i = load i8, ptr %.12.i.i, align 1
  %.14.i.i = zext i8 %.13.i.i to i64
  %.16.i.i = shl nuw nsw i64 %.14.i.i, 16
  %.19.i.i = getelementptr i8, ptr %arg.data, i64 6
  %.20.i.i = load i8, ptr %.19.i.i, align 1
  %.21.i.i = zext i8 %.20.i.i to i64
  %.23.i.i = shl nuw nsw i64 %.21.i.i, 8
  %.26.i.i = getelementptr i8, ptr %arg.data, i64 7
  %.27.i.i = load i8, ptr %.26.i.i, align 1
  %.28.i.i = zext i8 %.27.i.i to i64
  %2 = or i64 %.16.i.i, %.10.i.i
  %.17.i.i = or i64 %2, %.28.i.i
  %.30.i.i = or i64 %.17.i.i, %.23.i.i
  %.37.i = icmp slt i8 %.7.i.i, 0
  %.40.i = or i64 %.30.i.i, -4294967296
  %"$phi60.0.2.0.i" = select i1 %.37.i, i64 %.40.i, i64 %.30.i.i
  %.177 = getelementptr i8, ptr %arg.numbers, i64 32
  store i64 %spec.select.i10, ptr %.177, align 8
  %.180 = getelementptr i8, ptr %arg.numbers, i64 40
  store i64 %"$phi60.0.2.0.i", ptr %.180, align 8
  %.184 = getelementptr i8, ptr %arg.numbers, i64 48
  store i64 10, ptr %.184, align 8
  %.188 = getelementptr i8, ptr %arg.numbers, i64 56
  store i64 %spec.select.i21, ptr %.188, align 8
  %3 = tail call i64 @llvm.smax.i64(i64 %spec.select.i21, i64 0)
  %at.3.0 = add nuw nsw i64 %3, 10
  %.209 = sub nsw i64 %arg.size, %at.3.0
  %.211 = icmp slt i64 %.209, 85
  br i1 %.211, label %B360, label %B364

B364.endif:
  %.267 = icmp slt i64 %.247, 0
  br i1 %.267, label %B414, label %B418

B364.if.if:
  %.245 = icmp sgt i32 %.237, 0
  %.238 = load ptr, ptr %excinfo.5, align 8
  %.246 = select i1 %.245, ptr %.238, ptr undef
  store ptr %.246, ptr %excinfo, align 8
  br label %common.ret

B418.endif:
  %4 = icmp eq i32 %.294, 0
  br i1 %4, label %B484, label %B418.endif.if.if

B418.endif.thread:
  %5 = icmp eq i32 %.294, 0
  br i1 %5, label %B480, label %B418.endif.if.if

B418.endif.if.if:
  store ptr null, ptr %excinfo, align 8
  br label %common.ret

B484.endif:
  %.372 = load i64, ptr %.358, align 8
  %.386.not = icmp eq i64 %.372, 0
  br i1 %.386.not, label %B654, label %B724

B484.if.if:
  %.370 = icmp sgt i32 %.362, 0
  %.363 = load ptr, ptr %excinfo.7, align 8
  %.371 = select i1 %.370, ptr %.363, ptr undef
  store ptr %.371, ptr %excinfo, align 8
  br label %common.ret
}

define internal i32 @compiled_check(ptr %retptr, ptr %excinfo, ptr %arg.data, i64 %arg.at, i64 %arg.size, i64 %arg.count, i64 %arg.last_delta, i64 %arg.base_timestamp, i64 %arg.keys_required, i64 %arg.earliest, i64 %arg.latest, ptr %arg.refused, ptr %arg.numbers) {
B0.endif:
  %.323 = alloca [2 x i64], align 8
  %excinfo.2 = alloca ptr, align 8
  %.793 = alloca [2 x i64], align 8
  %excinfo.6 = alloca ptr, align 8
  store ptr null, ptr %excinfo.6, align 8
  %.136564.not = icmp slt i64 %arg.count, 1
  br i1 %.136564.not, label %B942, label %B54.preheader

B54.preheader:
  %const = bitcast i64 9223372036854775807 to i64
  br label %B54

B54:
  %delta.2.0571 = phi i64 [ %.102.i120, %B922 ], [ -1, %B54.preheader ]
  %out_of_range.2.0570 = phi i64 [ %out_of_range.3.2, %B922 ], [ 0, %B54.preheader ]
  %refusals.2.0569 = phi i64 [ %refusals.3.2, %B922 ], [ 0, %B54.preheader ]
  %largest.2.0568 = phi i64 [ %spec.select426, %B922 ], [ -1, %B54.preheader ]
  %at.9.0567 = phi i64 [ %.269, %B922 ], [ %arg.at, %B54.preheader ]
  %.142549565 = phi i64 [ %.149, %B922 ], [ 0, %B54.preheader ]
  %.149 = add nuw nsw i64 %.142549565, 1
  %sunkaddr169 = getelementptr i8, ptr %arg.numbers, i64 24
  store i64 %.142549565, ptr %sunkaddr169, align 8
  %.22.i = icmp slt i64 %at.9.0567, %arg.size
  br i1 %.22.i, label %B36.i, label %B158

B36.i:
  %.48.i = getelementptr i8, ptr %arg.data, i64 %at.9.0567
  %.49.i = load i8, ptr %.48.i, align 1
  %promoted = zext i8 %.49.i to i64
  %.53.i = add nsw i64 %at.9.0567, 1
  %0 = and i64 %promoted, 127
  %.69.i = icmp sgt i8 %.49.i, -1
  br i1 %.69.i, label %B54.endif, label %B144.i

B102.i:
  %1 = trunc i64 %5 to i8
  %.61.4.i = shl nuw nsw i64 %5, 28
  %.63.4.i = or i64 %.61.4.i, %.63.3.i
  %.53.4.i = add nsw i64 %at.9.0567, 5
  %.79.not.i = icmp ult i8 %1, 16
  br i1 %.79.not.i, label %B54.endif, label %B158

B144.i:
  %.125.i = icmp slt i64 %.53.i, %arg.size
  br i1 %.125.i, label %B36.1.i, label %B158

B36.1.i:
  %sunkaddr = getelementptr i8, ptr %arg.data, i64 %at.9.0567
  %sunkaddr170 = getelementptr i8, ptr %sunkaddr, i64 1
  %.49.1.i = load i8, ptr %sunkaddr170, align 1
  %promoted171 = zext i8 %.49.1.i to i64
  %.53.1.i = add nsw i64 %at.9.0567, 2
  %2 = and i64 %promoted171, 127
  %.61.1.i = shl nuw nsw i64 %2, 7
  %.63.1.i = or i64 %.61.1.i, %0
  %.69.1.i = icmp sgt i8 %.49.1.i, -1
  br i1 %.69.1.i, label %B54.endif, label %B144.1.i

B144.1.i:
  %.125.1.i = icmp slt i64 %.53.1.i, %arg.size
  br i1 %.125.1.i, label %B36.2.i, label %B158

B36.2.i:
  %sunkaddr172 = getelementptr i8, ptr %arg.data, i64 %at.9.0567
  %sunkaddr173 = getelementptr i8, ptr %sunkaddr172, i64 2
  %.49.2.i = load i8, ptr %sunkaddr173, align 1
  %promoted174 = zext i8 %.49.2.i to i64
  %.53.2.i = add nsw i64 %at.9.0567, 3
  %3 = and i64 %promoted174, 127
  %.61.2.i = shl nuw nsw i64 %3, 14
  %.63.2.i = or i64 %.61.2.i, %.63.1.i
  %.69.2.i = icmp sgt i8 %.49.2.i, -1
  br i1 %.69.2.i, label %B54.endif, label %B144.2.i

B144.2.i:
  %.125.2.i = icmp slt i64 %.53.2.i, %arg.size
  br i1 %.125.2.i, label %B36.3.i, label %B158

B36.3.i:
  %sunkaddr175 = getelementptr i8, ptr %arg.data, i64 %at.9.0567
  %sunkaddr176 = getelementptr i8, ptr %sunkaddr175, i64 3
  %.49.3.i = load i8, ptr %sunkaddr176, align 1
  %promoted177 = zext i8 %.49.3.i to i64
  %.53.3.i = add nsw i64 %at.9.0567, 4
  %4 = and i64 %promoted177, 127
  %.61.3.i = shl nuw nsw i64 %4, 21
  %.63.3.i = or i64 %.61.3.i, %.63.2.i
  %.69.3.i = icmp sgt i8 %.49.3.i, -1
  br i1 %.69.3.i, label %B54.endif, label %B144.3.i

B144.3.i:
  %.125.3.i = icmp slt i64 %.53.3.i, %arg.size
  br i1 %.125.3.i, label %B36.4.i, label %B158

B36.4.i:
  %sunkaddr178 = getelementptr i8, ptr %arg.data, i64 %at.9.0567
  %sunkaddr179 = getelementptr i8, ptr %sunkaddr178, i64 4
  %.49.4.i = load i8, ptr %sunkaddr179, align 1
  %5 = zext i8 %.49.4.i to i64
  %.69.4.i = icmp sgt i8 %.49.4.i, -1
  br i1 %.69.4.i, label %B102.i, label %B158

common.ret:
  %common.ret.op = phi i32 [ 0, %B158 ], [ 0, %B198 ], [ 0, %B302 ], [ 0, %B348 ], [ 0, %B444 ], [ 0, %B532 ], [ 0, %B642 ], [ 0, %B714 ], [ 0, %B734 ], [ 0, %B954 ], [ 0, %B958 ], [ %.797, %B670.if.if ], [ %.327, %B204.if.if ]
  ret i32 %common.ret.op

B158:
  store i64 1, ptr %retptr, align 8
  br label %common.ret

B164:
  %.269 = add nuw nsw i64 %.102.i, %.53.lcssa4.i
  %.277 = getelementptr i8, ptr %arg.data, i64 %.53.lcssa4.i
  %.278 = load i8, ptr %.277, align 1
  %.280 = icmp slt i8 %.278, 0
  br i1 %.280, label %B198, label %B204

B198:
  store i64 10, ptr %retptr, align 8
  br label %common.ret

B204:
  %.318 = add nuw nsw i64 %.53.lcssa4.i, 1
  %.327 = call i32 @compiled_varlong(ptr %.323, ptr %excinfo.2, ptr %arg.data, i64 %.318, i64 %.269)
  %.337.fca.0.load = load i64, ptr %.323, align 8
  %sunkaddr180 = getelementptr inbounds i8, ptr %.323, i64 8
  %.337.fca.1.load = load i64, ptr %sunkaddr180, align 8
  switch i32 %.327, label %B204.if.if [
    i32 -2, label %B204.endif
    i32 0, label %B204.endif
  ]

B262:
  %.365 = icmp sgt i64 %.337.fca.0.load, 0
  br i1 %.365, label %B274, label %B308

B274:
  %.368 = sub nuw nsw i64 %const, %.337.fca.0.load
  %.370 = icmp sgt i64 %arg.base_timestamp, %.368
  br i1 %.370, label %B302, label %B354

B302:
  store i64 2, ptr %retptr, align 8
  br label %common.ret

B308:
  %.409 = icmp ne i64 %.337.fca.0.load, 0
  %const_mat = add i64 %const, 1
  %.412 = sub nsw i64 %const_mat, %.337.fca.0.load
  %.414 = icmp slt i64 %arg.base_timestamp, %.412
  %or.cond417 = select i1 %.409, i1 %.414, i1 false
  br i1 %or.cond417, label %B348, label %B354

B348:
  store i64 2, ptr %retptr, align 8
  br label %common.ret

B354:
  %.454 = add nsw i64 %.337.fca.0.load, %arg.base_timestamp
  %.22.i67 = icmp ult i64 %.337.fca.1.load, %.269
  br i1 %.22.i67, label %B36.i71, label %B444

B36.i71:
  %.48.i72 = getelementptr i8, ptr %arg.data, i64 %.337.fca.1.load
  %.49.i73 = load i8, ptr %.48.i72, align 1
  %promoted181 = zext i8 %.49.i73 to i64
  %.53.i74 = add nuw nsw i64 %.337.fca.1.load, 1
  %6 = and i64 %promoted181, 127
  %.69.i75 = icmp sgt i8 %.49.i73, -1
  br i1 %.69.i75, label %B354.endif, label %B144.i76

B102.i109:
  %7 = trunc i64 %11 to i8
  %.61.4.i110 = shl nuw nsw i64 %11, 28
  %.63.4.i111 = or i64 %.61.4.i110, %.63.3.i101
  %.53.4.i112 = add nuw nsw i64 %.337.fca.1.load, 5
  %.79.not.i113 = icmp ult i8 %7, 16
  br i1 %.79.not.i113, label %B354.endif, label %B444

B144.i76:
  %.125.i77 = icmp ult i64 %.53.i74, %.269
  br i1 %.125.i77, label %B36.1.i78, label %B444

B36.1.i78:
  %sunkaddr182 = getelementptr i8, ptr %arg.data, i64 %.337.fca.1.load
  %sunkaddr183 = getelementptr i8, ptr %sunkaddr182, i64 1
  %.49.1.i80 = load i8, ptr %sunkaddr183, align 1
  %promoted184 = zext i8 %.49.1.i80 to i64
  %.53.1.i81 = add nuw nsw i64 %.337.fca.1.load, 2
  %8 = and i64 %promoted184, 127
  %.61.1.i82 = shl nuw nsw i64 %8, 7
  %.63.1.i83 = or i64 %.61.1.i82, %6
  %.69.1.i84 = icmp sgt i8 %.49.1.i80, -1
  br i1 %.69.1.i84, label %B354.endif, label %B144.1.i85

B144.1.i85:
  %.125.1.i86 = icmp ult i64 %.53.1.i81, %.269
  br i1 %.125.1.i86, label %B36.2.i87, label %B444

B36.2.i87:
  %sunkaddr185 = getelementptr i8, ptr %arg.data, i64 %.337.fca.1.load
  %sunkaddr186 = getelementptr i8, ptr %sunkaddr185, i64 2
  %.49.2.i89 = load i8, ptr %sunkaddr186, align 1
  %promoted187 = zext i8 %.49.2.i89 to i64
  %.53.2.i90 = add nuw nsw i64 %.337.fca.1.load, 3
  %9 = and i64 %promoted187, 127
  %.61.2.i91 = shl nuw nsw i64 %9, 14
  %.63.2.i92 = or i64 %.61.2.i91, %.63.1.i83
  %.69.2.i93 = icmp sgt i8 %.49.2.i89, -1
  br i1 %.69.2.i93, label %B354.endif, label %B144.2.i94

B144.2.i94:
  %.125.2.i95 = icmp ult i64 %.53.2.i90, %.269
  br i1 %.125.2.i95, label %B36.3.i96, label %B444

B36.3.i96:
  %sunkaddr188 = getelementptr i8, ptr %arg.data, i64 %.337.fca.1.load
  %sunkaddr189 = getelementptr i8, ptr %sunkaddr188, i64 3
  %.49.3.i98 = load i8, ptr %sunkaddr189, align 1
  %promoted190 = zext i8 %.49.3.i98 to i64
  %.53.3.i99 = add nuw nsw i64 %.337.fca.1.load, 4
  %10 = and i64 %promoted190, 127
  %.61.3.i100 = shl nuw nsw i64 %10, 21
  %.63.3.i101 = or i64 %.61.3.i100, %.63.2.i92
  %.69.3.i102 = icmp sgt i8 %.49.3.i98, -1
  br i1 %.69.3.i102, label %B354.endif, label %B144.3.i103

B144.3.i103:
  %.125.3.i104 = icmp ult i64 %.53.3.i99, %.269
  br i1 %.125.3.i104, label %B36.4.i105, label %B444

B36.4.i105:
  %sunkaddr191 = getelementptr i8, ptr %arg.data, i64 %.337.fca.1.load
  %sunkaddr192 = getelementptr i8, ptr %sunkaddr191, i64 4
  %.49.4.i107 = load i8, ptr %sunkaddr192, align 1
  %11 = zext i8 %.49.4.i107 to i64
  %.69.4.i108 = icmp sgt i8 %.49.4.i107, -1
  br i1 %.69.4.i108, label %B102.i109, label %B444

B444:
  store i64 3, ptr %retptr, align 8
  br label %common.ret

B450:
  %.22.i122 = icmp ult i64 %.53.lcssa4.i116, %.269
  br i1 %.22.i122, label %B36.i126, label %B532

B36.i126:
  %.48.i127 = getelementptr i8, ptr %arg.data, i64 %.53.lcssa4.i116
  %.49.i128 = load i8, ptr %.48.i127, align 1
  %promoted193 = zext i8 %.49.i128 to i64
  %.53.i129 = add nuw nsw i64 %.53.lcssa4.i116, 1
  %12 = and i64 %promoted193, 127
  %.69.i130 = icmp sgt i8 %.49.i128, -1
  br i1 %.69.i130, label %B450.endif, label %B144.i131

B102.i164:
  %13 = trunc i64 %17 to i8
  %.61.4.i165 = shl nuw nsw i64 %17, 28
  %.63.4.i166 = or i64 %.61.4.i165, %.63.3.i156
  %.53.4.i167 = add nuw nsw i64 %.53.lcssa4.i116, 5
  %.79.not.i168 = icmp ult i8 %13, 16
  br i1 %.79.not.i168, label %B450.endif, label %B532

B144.i131:
  %.125.i132 = icmp ult i64 %.53.i129, %.269
  br i1 %.125.i132, label %B36.1.i133, label %B532

B36.1.i133:
  %sunkaddr194 = getelementptr i8, ptr %arg.data, i64 %.53.lcssa4.i116
  %sunkaddr195 = getelementptr i8, ptr %sunkaddr194, i64 1
  %.49.1.i135 = load i8, ptr %sunkaddr195, align 1
  %promoted196 = zext i8 %.49.1.i135 to i64
  %.53.1.i136 = add nuw nsw i64 %.53.lcssa4.i116, 2
  %14 = and i64 %promoted196, 127
  %.61.1.i137 = shl nuw nsw i64 %14, 7
  %.63.1.i138 = or i64 %.61.1.i137, %12
  %.69.1.i139 = icmp sgt i8 %.49.1.i135, -1
  br i1 %.69.1.i139, label %B450.endif, label %B144.1.i140

B144.1.i140:
  %.125.1.i141 = icmp ult i64 %.53.1.i136, %.269
  br i1 %.125.1.i141, label %B36.2.i142, label %B532

B36.2.i142:
  %sunkaddr197 = getelementptr i8, ptr %arg.data, i64 %.53.lcssa4.i116
  %sunkaddr198 = getelementptr i8, ptr %sunkaddr197, i64 2
  %.49.2.i144 = load i8, ptr %sunkaddr198, align 1
  %promoted199 = zext i8 %.49.2.i144 to i64
  %.53.2.i145 = add nuw nsw i64 %.53.lcssa4.i116, 3
  %15 = and i64 %promoted199, 127
  %.61.2.i146 = shl nuw nsw i64 %15, 14
  %.63.2.i147 = or i64 %.61.2.i146, %.63.1.i138
  %.69.2.i148 = icmp sgt i8 %.49.2.i144, -1
  br i1 %.69.2.i148, label %B450.endif, label %B144.2.i149

B144.2.i149:
  %.125.2.i150 = icmp ult i64 %.53.2.i145, %.269
  br i1 %.125.2.i150, label %B36.3.i151, label %B532

B36.3.i151:
  %sunkaddr200 = getelementptr i8, ptr %arg.data, i64 %.53.lcssa4.i116
  %sunkaddr201 = getelementptr i8, ptr %sunkaddr200, i64 3
  %.49.3.i153 = load i8, ptr %sunkaddr201, align 1
  %promoted202 = zext i8 %.49.3.i153 to i64
  %.53.3.i154 = add nuw nsw i64 %.53.lcssa4.i116, 4
  %16 = and i64 %promoted202, 127
  %.61.3.i155 = shl nuw nsw i64 %16, 21
  %.63.3.i156 = or i64 %.61.3.i155, %.63.2.i147
  %.69.3.i157 = icmp sgt i8 %.49.3.i153, -1
  br i1 %.69.3.i157, label %B450.endif, label %B144.3.i158

B144.3.i158:
  %.125.3.i159 = icmp ult i64 %.53.3.i154, %.269
  br i1 %.125.3.i159, label %B36.4.i160, label %B532

B36.4.i160:
  %sunkaddr203 = getelementptr i8, ptr %arg.data, i64 %.53.lcssa4.i116
  %sunkaddr204 = getelementptr i8, ptr %sunkaddr203, i64 4
  %.49.4.i162 = load i8, ptr %sunkaddr204, align 1
  %17 = zext i8 %.49.4.i162 to i64
  %.69.4.i163 = icmp sgt i8 %.49.4.i162, -1
  br i1 %.69.4.i163, label %B102.i164, label %B532

B532:
  store i64 4, ptr %retptr, align 8
  br label %common.ret

B538:
  %.664 = tail call i64 @llvm.smax.i64(i64 %.102.i175, i64 0)
  %spec.select = add nuw nsw i64 %.664, %.53.lcssa4.i171
  %.22.i177 = icmp ult i64 %spec.select, %.269
  br i1 %.22.i177, label %B36.i181, label %B642

B36.i181:
  %.48.i182 = getelementptr i8, ptr %arg.data, i64 %spec.select
  %.49.i183 = load i8, ptr %.48.i182, align 1
  %promoted205 = zext i8 %.49.i183 to i64
  %.53.i184 = add nuw nsw i64 %spec.select, 1
  %18 = and i64 %promoted205, 127
  %.69.i185 = icmp sgt i8 %.49.i183, -1
  br i1 %.69.i185, label %B560.endif, label %B144.i186

B102.i219:
  %19 = trunc i64 %23 to i8
  %.61.4.i220 = shl nuw nsw i64 %23, 28
  %.63.4.i221 = or i64 %.61.4.i220, %.63.3.i211
  %.53.4.i222 = add nuw nsw i64 %spec.select, 5
  %.79.not.i223 = icmp ult i8 %19, 16
  br i1 %.79.not.i223, label %B560.endif, label %B642

B144.i186:
  %.125.i187 = icmp ult i64 %.53.i184, %.269
  br i1 %.125.i187, label %B36.1.i188, label %B642

B36.1.i188:
  %sunkaddr206 = getelementptr i8, ptr %arg.data, i64 %spec.select
  %sunkaddr207 = getelementptr i8, ptr %sunkaddr206, i64 1
  %.49.1.i190 = load i8, ptr %sunkaddr207, align 1
  %promoted208 = zext i8 %.49.1.i190 to i64
  %.53.1.i191 = add nuw nsw i64 %spec.select, 2
  %20 = and i64 %promoted208, 127
  %.61.1.i192 = shl nuw nsw i64 %20, 7
  %.63.1.i193 = or i64 %.61.1.i192, %18
  %.69.1.i194 = icmp sgt i8 %.49.1.i190, -1
  br i1 %.69.1.i194, label %B560.endif, label %B144.1.i195

B144.1.i195:
  %.125.1.i196 = icmp ult i64 %.53.1.i191, %.269
  br i1 %.125.1.i196, label %B36.2.i197, label %B642

B36.2.i197:
  %sunkaddr209 = getelementptr i8, ptr %arg.data, i64 %spec.select
  %sunkaddr210 = getelementptr i8, ptr %sunkaddr209, i64 2
  %.49.2.i199 = load i8, ptr %sunkaddr210, align 1
  %promoted211 = zext i8 %.49.2.i199 to i64
  %.53.2.i200 = add nuw nsw i64 %spec.select, 3
  %21 = and i64 %promoted211, 127
  %.61.2.i201 = shl nuw nsw i64 %21, 14
  %.63.2.i202 = or i64 %.61.2.i201, %.63.1.i193
  %.69.2.i203 = icmp sgt i8 %.49.2.i199, -1
  br i1 %.69.2.i203, label %B560.endif, label %B144.2.i204

B144.2.i204:
  %.125.2.i205 = icmp ult i64 %.53.2.i200, %.269
  br i1 %.125.2.i205, label %B36.3.i206, label %B642

B36.3.i206:
  %sunkaddr212 = getelementptr i8, ptr %arg.data, i64 %spec.select
  %sunkaddr213 = getelementptr i8, ptr %sunkaddr212, i64 3
  %.49.3.i208 = load i8, ptr %sunkaddr213, align 1
  %promoted214 = zext i8 %.49.3.i208 to i64
  %.53.3.i209 = add nuw nsw i64 %spec.select, 4
  %22 = and i64 %promoted214, 127
  %.61.3.i210 = shl nuw nsw i64 %22, 21
  %.63.3.i211 = or i64 %.61.3.i210, %.63.2.i202
  %.69.3.i212 = icmp sgt i8 %.49.3.i208, -1
  br i1 %.69.3.i212, label %B560.endif, label %B144.3.i213

B144.3.i213:
  %.125.3.i214 = icmp ult i64 %.53.3.i209, %.269
  br i1 %.125.3.i214, label %B36.4.i215, label %B642

B36.4.i215:
  %sunkaddr215 = getelementptr i8, ptr %arg.data, i64 %spec.select
  %sunkaddr216 = getelementptr i8, ptr %sunkaddr215, i64 4
  %.49.4.i217 = load i8, ptr %sunkaddr216, align 1
  %23 = zext i8 %.49.4.i217 to i64
  %.69.4.i218 = icmp sgt i8 %.49.4.i217, -1
  br i1 %.69.4.i218, label %B102.i219, label %B642

B642:
  store i64 5, ptr %retptr, align 8
  br label %common.ret

B648:
  %.777 = tail call i64 @llvm.smax.i64(i64 %.102.i230, i64 0)
  %spec.select424 = add nuw nsw i64 %.777, %.53.lcssa4.i226
  call void @llvm.memset.p0.i64(ptr align 8 dereferenceable(16) %.793, i8 0, i64 16, i1 false)
  %.797 = call i32 @compiled_headers(ptr %.793, ptr %excinfo.6, ptr %arg.data, i64 %spec.select424, i64 %.269)
  %sunkaddr217 = getelementptr inbounds i8, ptr %.793, i64 8
  %.807.fca.1.load = load i64, ptr %sunkaddr217, align 8
  %cond = icmp eq i32 %.797, 0
  br i1 %cond, label %B670.endif, label %B670.if.if

B714:
  store i64 %.807.fca.0.load, ptr %retptr, align 8
  br label %common.ret

B722:
  %.881.not = icmp eq i64 %.807.fca.1.load, %.269
  br i1 %.881.not, label %B768, label %B734

B734:
  store i64 8, ptr %retptr, align 8
  br label %common.ret

B768:
  %or.cond425 = icmp slt i64 %.454, -1
  br i1 %or.cond425, label %B804, label %B922

B804:
  %.977 = icmp slt i64 %refusals.2.0569, 100
  br i1 %.977, label %B884, label %B912

B884:
  %.987.idx = mul i64 %refusals.2.0569, 24
  %.987 = getelementptr i8, ptr %arg.refused, i64 %.987.idx
  store i64 %.102.i120, ptr %.987, align 8
  %.993 = getelementptr i8, ptr %.987, i64 8
  store i64 %.454, ptr %.993, align 8
  %.1010 = getelementptr i8, ptr %.987, i64 16
  store i64 0, ptr %.1010, align 8
  br label %B912

B912:
  %.1019 = add nsw i64 %refusals.2.0569, 1
  %.1038 = add nsw i64 %out_of_range.2.0570, 1
  br label %B922

B922:
  %refusals.3.2 = phi i64 [ %refusals.2.0569, %B768 ], [ %.1019, %B912 ]
  %out_of_range.3.2 = phi i64 [ %out_of_range.2.0570, %B768 ], [ %.1038, %B912 ]
  %spec.select426 = tail call i64 @llvm.smax.i64(i64 %.454, i64 %largest.2.0568)
  %exitcond.not = icmp eq i64 %arg.count, %.149
  br i1 %exitcond.not, label %B942, label %B54

B942:
  %at.9.0.lcssa = phi i64 [ %arg.at, %B0.endif ], [ %.269, %B922 ]
  %largest.2.0.lcssa = phi i64 [ -1, %B0.endif ], [ %spec.select426, %B922 ]
  %refusals.2.0.lcssa = phi i64 [ 0, %B0.endif ], [ %refusals.3.2, %B922 ]
  %out_of_range.2.0.lcssa = phi i64 [ 0, %B0.endif ], [ %out_of_range.3.2, %B922 ]
  %.1118.not = icmp eq i64 %at.9.0.lcssa, %arg.size
  br i1 %.1118.not, label %B958, label %B954

B954:
  store i64 9, ptr %retptr, align 8
  br label %common.ret

B958:
  store i64 %largest.2.0.lcssa, ptr %arg.numbers, align 8
  %.1142 = getelementptr i8, ptr %arg.numbers, i64 8
  store i64 %refusals.2.0.lcssa, ptr %.1142, align 8
  %.1148 = getelementptr i8, ptr %arg.numbers, i64 16
  store i64 %out_of_range.2.0.lcssa, ptr %.1148, align 8
  store i64 0, ptr %retptr, align 8
  br label %common.ret

B54.endif:
  %.63.lcssa5.i = phi i64 [ %.63.4.i, %B102.i ], [ %.63.3.i, %B36.3.i ], [ %.63.2.i, %B36.2.i ], [ %.63.1.i, %B36.1.i ], [ %0, %B36.i ]
  %.53.lcssa4.i = phi i64 [ %.53.4.i, %B102.i ], [ %.53.3.i, %B36.3.i ], [ %.53.2.i, %B36.2.i ], [ %.53.1.i, %B36.1.i ], [ %.53.i, %B36.i ]
  %.96.i = lshr i64 %.63.lcssa5.i, 1
  %.98.i = and i64 %.63.lcssa5.i, 1
  %.101.i = sub nsw i64 0, %.98.i
  %.102.i = xor i64 %.96.i, %.101.i
  %.222 = icmp slt i64 %.53.lcssa4.i, 0
  %.225 = icmp slt i64 %.102.i, 1
  %or.cond = select i1 %.222, i1 true, i1 %.225
  %.229 = sub nsw i64 %arg.size, %.53.lcssa4.i
  %.231 = icmp sgt i64 %.102.i, %.229
  %or.cond416 = select i1 %or.cond, i1 true, i1 %.231
  br i1 %or.cond416, label %B158, label %B164

B204.endif:
  %.362 = icmp slt i64 %.337.fca.1.load, 0
  br i1 %.362, label %B302, label %B262

B204.if.if:
  store ptr null, ptr %excinfo, align 8
  br label %common.ret

B354.endif:
  %.63.lcssa5.i115 = phi i64 [ %.63.4.i111, %B102.i109 ], [ %.63.3.i101, %B36.3.i96 ], [ %.63.2.i92, %B36.2.i87 ], [ %.63.1.i83, %B36.1.i78 ], [ %6, %B36.i71 ]
  %.53.lcssa4.i116 = phi i64 [ %.53.4.i112, %B102.i109 ], [ %.53.3.i99, %B36.3.i96 ], [ %.53.2.i90, %B36.2.i87 ], [ %.53.1.i81, %B36.1.i78 ], [ %.53.i74, %B36.i71 ]
  %.96.i117 = lshr i64 %.63.lcssa5.i115, 1
  %.98.i118 = and i64 %.63.lcssa5.i115, 1
  %.101.i119 = sub nsw i64 0, %.98.i118
  %.102.i120 = xor i64 %.96.i117, %.101.i119
  %.515 = icmp sle i64 %.102.i120, %delta.2.0571
  %.521 = icmp sgt i64 %.102.i120, %arg.last_delta
  %or.cond419 = select i1 %.515, i1 true, i1 %.521
  br i1 %or.cond419, label %B444, label %B450

B450.endif:
  %.63.lcssa5.i170 = phi i64 [ %.63.4.i166, %B102.i164 ], [ %.63.3.i156, %B36.3.i151 ], [ %.63.2.i147, %B36.2.i142 ], [ %.63.1.i138, %B36.1.i133 ], [ %12, %B36.i126 ]
  %.53.lcssa4.i171 = phi i64 [ %.53.4.i167, %B102.i164 ], [ %.53.3.i154, %B36.3.i151 ], [ %.53.2.i145, %B36.2.i142 ], [ %.53.1.i136, %B36.1.i133 ], [ %.53.i129, %B36.i126 ]
  %.96.i172 = lshr i64 %.63.lcssa5.i170, 1
  %.98.i173 = and i64 %.63.lcssa5.i170, 1
  %.101.i174 = sub nsw i64 0, %.98.i173
  %.102.i175 = xor i64 %.96.i172, %.101.i174
  %.609 = icmp slt i64 %.102.i175, -1
  %.613 = sub nsw i64 %.269, %.53.lcssa4.i171
  %.615 = icmp sgt i64 %.102.i175, %.613
  %or.cond421 = select i1 %.609, i1 true, i1 %.615
  br i1 %or.cond421, label %B532, label %B538

B560.endif:
  %.63.lcssa5.i225 = phi i64 [ %.63.4.i221, %B102.i219 ], [ %.63.3.i211, %B36.3.i206 ], [ %.63.2.i202, %B36.2.i197 ], [ %.63.1.i193, %B36.1.i188 ], [ %18, %B36.i181 ]
  %.53.lcssa4.i226 = phi i64 [ %.53.4.i222, %B102.i219 ], [ %.53.3.i209, %B36.3.i206 ], [ %.53.2.i200, %B36.2.i197 ], [ %.53.1.i191, %B36.1.i188 ], [ %.53.i184, %B36.i181 ]
  %.96.i227 = lshr i64 %.63.lcssa5.i225, 1
  %.98.i228 = and i64 %.63.lcssa5.i225, 1
  %.101.i229 = sub nsw i64 0, %.98.i228
  %.102.i230 = xor i64 %.96.i227, %.101.i229
  %.720 = icmp slt i64 %.102.i230, -1
  %.724 = sub nsw i64 %.269, %.53.lcssa4.i226
  %.726 = icmp sgt i64 %.102.i230, %.724
  %or.cond423 = select i1 %.720, i1 true, i1 %.726
  br i1 %or.cond423, label %B642, label %B648

B670.endif:
  %.807.fca.0.load = load i64, ptr %.793, align 8
  %.834.not = icmp eq i64 %.807.fca.0.load, 0
  br i1 %.834.not, label %B722, label %B714

B670.if.if:
  %.805 = icmp sgt i32 %.797, 0
  %.798 = load ptr, ptr %excinfo.6, align 8
  %.806 = select i1 %.805, ptr %.798, ptr undef
  store ptr %.806, ptr %excinfo, align 8
  br label %common.ret
}

define internal i32 @compiled_headers(ptr %retptr, ptr %excinfo, ptr %arg.data, i64 %arg.at, i64 %arg.end) {
B0:
  %.274 = alloca i8, align 1
  %excinfo.3 = alloca ptr, align 8
  %.22.i = icmp slt i64 %arg.at, %arg.end
  br i1 %.22.i, label %B36.i, label %B92

B36.i:
  %.48.i = getelementptr i8, ptr %arg.data, i64 %arg.at
  %.49.i = load i8, ptr %.48.i, align 1
  %promoted = zext i8 %.49.i to i64
  %.53.i = add nsw i64 %arg.at, 1
  %0 = and i64 %promoted, 127
  %.69.i = icmp sgt i8 %.49.i, -1
  br i1 %.69.i, label %B0.endif, label %B144.i

B102.i:
  %1 = trunc i64 %5 to i8
  %.61.4.i = shl nuw nsw i64 %5, 28
  %.63.4.i = or i64 %.61.4.i, %.63.3.i
  %.53.4.i = add nsw i64 %arg.at, 5
  %.79.not.i = icmp ult i8 %1, 16
  br i1 %.79.not.i, label %B0.endif, label %B92

B144.i:
  %.125.i = icmp slt i64 %.53.i, %arg.end
  br i1 %.125.i, label %B36.1.i, label %B92

B36.1.i:
  %sunkaddr = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr50 = getelementptr i8, ptr %sunkaddr, i64 1
  %.49.1.i = load i8, ptr %sunkaddr50, align 1
  %promoted51 = zext i8 %.49.1.i to i64
  %.53.1.i = add nsw i64 %arg.at, 2
  %2 = and i64 %promoted51, 127
  %.61.1.i = shl nuw nsw i64 %2, 7
  %.63.1.i = or i64 %.61.1.i, %0
  %.69.1.i = icmp sgt i8 %.49.1.i, -1
  br i1 %.69.1.i, label %B0.endif, label %B144.1.i

B144.1.i:
  %.125.1.i = icmp slt i64 %.53.1.i, %arg.end
  br i1 %.125.1.i, label %B36.2.i, label %B92

B36.2.i:
  %sunkaddr52 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr53 = getelementptr i8, ptr %sunkaddr52, i64 2
  %.49.2.i = load i8, ptr %sunkaddr53, align 1
  %promoted54 = zext i8 %.49.2.i to i64
  %.53.2.i = add nsw i64 %arg.at, 3
  %3 = and i64 %promoted54, 127
  %.61.2.i = shl nuw nsw i64 %3, 14
  %.63.2.i = or i64 %.61.2.i, %.63.1.i
  %.69.2.i = icmp sgt i8 %.49.2.i, -1
  br i1 %.69.2.i, label %B0.endif, label %B144.2.i

B144.2.i:
  %.125.2.i = icmp slt i64 %.53.2.i, %arg.end
  br i1 %.125.2.i, label %B36.3.i, label %B92

B36.3.i:
  %sunkaddr55 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr56 = getelementptr i8, ptr %sunkaddr55, i64 3
  %.49.3.i = load i8, ptr %sunkaddr56, align 1
  %promoted57 = zext i8 %.49.3.i to i64
  %.53.3.i = add nsw i64 %arg.at, 4
  %4 = and i64 %promoted57, 127
  %.61.3.i = shl nuw nsw i64 %4, 21
  %.63.3.i = or i64 %.61.3.i, %.63.2.i
  %.69.3.i = icmp sgt i8 %.49.3.i, -1
  br i1 %.69.3.i, label %B0.endif, label %B144.3.i

B144.3.i:
  %.125.3.i = icmp slt i64 %.53.3.i, %arg.end
  br i1 %.125.3.i, label %B36.4.i, label %B92

B36.4.i:
  %sunkaddr58 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr59 = getelementptr i8, ptr %sunkaddr58, i64 4
  %.49.4.i = load i8, ptr %sunkaddr59, align 1
  %5 = zext i8 %.49.4.i to i64
  %.69.4.i = icmp sgt i8 %.49.4.i, -1
  br i1 %.69.4.i, label %B102.i, label %B92

common.ret:
  %common.ret.op = phi i32 [ 0, %B92 ], [ 0, %B256 ], [ 0, %B360 ], [ 0, %B396 ], [ %.278, %B216.endif.if.if ]
  ret i32 %common.ret.op

B92:
  %.sink.i144 = phi i64 [ -1, %B36.4.i ], [ %.53.lcssa4.i, %B0.endif ], [ -1, %B102.i ], [ -1, %B0 ], [ -1, %B144.i ], [ -1, %B144.3.i ], [ -1, %B144.2.i ], [ -1, %B144.1.i ]
  store i64 6, ptr %retptr, align 8
  %retptr.repack149 = getelementptr i8, ptr %retptr, i64 8
  store i64 %.sink.i144, ptr %retptr.repack149, align 8
  br label %common.ret

B132:
  %lsr.iv = phi i64 [ %18, %B132.preheader ], [ %lsr.iv.next, %B372 ]
  %at.1.5.0199 = phi i64 [ %.53.lcssa4.i, %B132.preheader ], [ %spec.select, %B372 ]
  %.22.i27 = icmp slt i64 %at.1.5.0199, %arg.end
  br i1 %.22.i27, label %B36.i31, label %B256

B36.i31:
  %.48.i32 = getelementptr i8, ptr %arg.data, i64 %at.1.5.0199
  %.49.i33 = load i8, ptr %.48.i32, align 1
  %promoted60 = zext i8 %.49.i33 to i64
  %.53.i34 = add nuw nsw i64 %at.1.5.0199, 1
  %6 = and i64 %promoted60, 127
  %.69.i35 = icmp sgt i8 %.49.i33, -1
  br i1 %.69.i35, label %B132.endif, label %B144.i36

B102.i69:
  %7 = trunc i64 %11 to i8
  %.61.4.i70 = shl nuw nsw i64 %11, 28
  %.63.4.i71 = or i64 %.61.4.i70, %.63.3.i61
  %.53.4.i72 = add nsw i64 %at.1.5.0199, 5
  %.79.not.i73 = icmp ult i8 %7, 16
  br i1 %.79.not.i73, label %B132.endif, label %B256

B144.i36:
  %.125.i37 = icmp ult i64 %.53.i34, %arg.end
  br i1 %.125.i37, label %B36.1.i38, label %B256

B36.1.i38:
  %sunkaddr61 = getelementptr i8, ptr %arg.data, i64 %at.1.5.0199
  %sunkaddr62 = getelementptr i8, ptr %sunkaddr61, i64 1
  %.49.1.i40 = load i8, ptr %sunkaddr62, align 1
  %promoted63 = zext i8 %.49.1.i40 to i64
  %.53.1.i41 = add nsw i64 %at.1.5.0199, 2
  %8 = and i64 %promoted63, 127
  %.61.1.i42 = shl nuw nsw i64 %8, 7
  %.63.1.i43 = or i64 %.61.1.i42, %6
  %.69.1.i44 = icmp sgt i8 %.49.1.i40, -1
  br i1 %.69.1.i44, label %B132.endif, label %B144.1.i45

B144.1.i45:
  %.125.1.i46 = icmp slt i64 %.53.1.i41, %arg.end
  br i1 %.125.1.i46, label %B36.2.i47, label %B256

B36.2.i47:
  %sunkaddr64 = getelementptr i8, ptr %arg.data, i64 %at.1.5.0199
  %sunkaddr65 = getelementptr i8, ptr %sunkaddr64, i64 2
  %.49.2.i49 = load i8, ptr %sunkaddr65, align 1
  %promoted66 = zext i8 %.49.2.i49 to i64
  %.53.2.i50 = add nsw i64 %at.1.5.0199, 3
  %9 = and i64 %promoted66, 127
  %.61.2.i51 = shl nuw nsw i64 %9, 14
  %.63.2.i52 = or i64 %.61.2.i51, %.63.1.i43
  %.69.2.i53 = icmp sgt i8 %.49.2.i49, -1
  br i1 %.69.2.i53, label %B132.endif, label %B144.2.i54

B144.2.i54:
  %.125.2.i55 = icmp slt i64 %.53.2.i50, %arg.end
  br i1 %.125.2.i55, label %B36.3.i56, label %B256

B36.3.i56:
  %sunkaddr67 = getelementptr i8, ptr %arg.data, i64 %at.1.5.0199
  %sunkaddr68 = getelementptr i8, ptr %sunkaddr67, i64 3
  %.49.3.i58 = load i8, ptr %sunkaddr68, align 1
  %promoted69 = zext i8 %.49.3.i58 to i64
  %.53.3.i59 = add nsw i64 %at.1.5.0199, 4
  %10 = and i64 %promoted69, 127
  %.61.3.i60 = shl nuw nsw i64 %10, 21
  %.63.3.i61 = or i64 %.61.3.i60, %.63.2.i52
  %.69.3.i62 = icmp sgt i8 %.49.3.i58, -1
  br i1 %.69.3.i62, label %B132.endif, label %B144.3.i63

B144.3.i63:
  %.125.3.i64 = icmp slt i64 %.53.3.i59, %arg.end
  br i1 %.125.3.i64, label %B36.4.i65, label %B256

B36.4.i65:
  %sunkaddr70 = getelementptr i8, ptr %arg.data, i64 %at.1.5.0199
  %sunkaddr71 = getelementptr i8, ptr %sunkaddr70, i64 4
  %.49.4.i67 = load i8, ptr %sunkaddr71, align 1
  %11 = zext i8 %.49.4.i67 to i64
  %.69.4.i68 = icmp sgt i8 %.49.4.i67, -1
  br i1 %.69.4.i68, label %B102.i69, label %B256

B216:
  %.271 = add nuw nsw i64 %.102.i80, %.53.lcssa4.i76
  store i8 0, ptr %.274, align 1
  %.278 = call i32 @compiled_is_utf8(ptr %.274, ptr %excinfo.3, ptr %arg.data, i64 %.53.lcssa4.i76, i64 %.271)
  %.288 = load i8, ptr %.274, align 1
  %.291 = icmp eq i8 %.288, 0
  br i1 %.291, label %B216.endif.thread, label %B216.endif

B256:
  %.sink.i29153 = phi i64 [ %.53.lcssa4.i76, %B216.endif.thread ], [ %.53.lcssa4.i76, %B216.endif.thread ], [ %.53.lcssa4.i76, %B132.endif ], [ -1, %B102.i69 ], [ -1, %B132 ], [ -1, %B144.i36 ], [ -1, %B144.3.i63 ], [ -1, %B144.2.i54 ], [ -1, %B144.1.i45 ], [ -1, %B36.4.i65 ]
  store i64 7, ptr %retptr, align 8
  %retptr.repack147 = getelementptr i8, ptr %retptr, i64 8
  store i64 %.sink.i29153, ptr %retptr.repack147, align 8
  br label %common.ret

B268:
  %.22.i82 = icmp slt i64 %.271, %arg.end
  br i1 %.22.i82, label %B36.i86, label %B360

B36.i86:
  %.48.i87 = getelementptr i8, ptr %arg.data, i64 %.271
  %.49.i88 = load i8, ptr %.48.i87, align 1
  %promoted72 = zext i8 %.49.i88 to i64
  %.53.i89 = add nuw nsw i64 %.271, 1
  %12 = and i64 %promoted72, 127
  %.69.i90 = icmp sgt i8 %.49.i88, -1
  br i1 %.69.i90, label %B268.endif, label %B144.i91

B102.i124:
  %13 = trunc i64 %17 to i8
  %.61.4.i125 = shl nuw nsw i64 %17, 28
  %.63.4.i126 = or i64 %.61.4.i125, %.63.3.i116
  %.53.4.i127 = add nuw nsw i64 %.271, 5
  %.79.not.i128 = icmp ult i8 %13, 16
  br i1 %.79.not.i128, label %B268.endif, label %B360

B144.i91:
  %.125.i92 = icmp slt i64 %.53.i89, %arg.end
  br i1 %.125.i92, label %B36.1.i93, label %B360

B36.1.i93:
  %sunkaddr73 = getelementptr i8, ptr %arg.data, i64 %.271
  %sunkaddr74 = getelementptr i8, ptr %sunkaddr73, i64 1
  %.49.1.i95 = load i8, ptr %sunkaddr74, align 1
  %promoted75 = zext i8 %.49.1.i95 to i64
  %.53.1.i96 = add nuw nsw i64 %.271, 2
  %14 = and i64 %promoted75, 127
  %.61.1.i97 = shl nuw nsw i64 %14, 7
  %.63.1.i98 = or i64 %.61.1.i97, %12
  %.69.1.i99 = icmp sgt i8 %.49.1.i95, -1
  br i1 %.69.1.i99, label %B268.endif, label %B144.1.i100

B144.1.i100:
  %.125.1.i101 = icmp slt i64 %.53.1.i96, %arg.end
  br i1 %.125.1.i101, label %B36.2.i102, label %B360

B36.2.i102:
  %sunkaddr76 = getelementptr i8, ptr %arg.data, i64 %.271
  %sunkaddr77 = getelementptr i8, ptr %sunkaddr76, i64 2
  %.49.2.i104 = load i8, ptr %sunkaddr77, align 1
  %promoted78 = zext i8 %.49.2.i104 to i64
  %.53.2.i105 = add nuw nsw i64 %.271, 3
  %15 = and i64 %promoted78, 127
  %.61.2.i106 = shl nuw nsw i64 %15, 14
  %.63.2.i107 = or i64 %.61.2.i106, %.63.1.i98
  %.69.2.i108 = icmp sgt i8 %.49.2.i104, -1
  br i1 %.69.2.i108, label %B268.endif, label %B144.2.i109

B144.2.i109:
  %.125.2.i110 = icmp slt i64 %.53.2.i105, %arg.end
  br i1 %.125.2.i110, label %B36.3.i111, label %B360

B36.3.i111:
  %sunkaddr79 = getelementptr i8, ptr %arg.data, i64 %.271
  %sunkaddr80 = getelementptr i8, ptr %sunkaddr79, i64 3
  %.49.3.i113 = load i8, ptr %sunkaddr80, align 1
  %promoted81 = zext i8 %.49.3.i113 to i64
  %.53.3.i114 = add nuw nsw i64 %.271, 4
  %16 = and i64 %promoted81, 127
  %.61.3.i115 = shl nuw nsw i64 %16, 21
  %.63.3.i116 = or i64 %.61.3.i115, %.63.2.i107
  %.69.3.i117 = icmp sgt i8 %.49.3.i113, -1
  br i1 %.69.3.i117, label %B268.endif, label %B144.3.i118

B144.3.i118:
  %.125.3.i119 = icmp slt i64 %.53.3.i114, %arg.end
  br i1 %.125.3.i119, label %B36.4.i120, label %B360

B36.4.i120:
  %sunkaddr82 = getelementptr i8, ptr %arg.data, i64 %.271
  %sunkaddr83 = getelementptr i8, ptr %sunkaddr82, i64 4
  %.49.4.i122 = load i8, ptr %sunkaddr83, align 1
  %17 = zext i8 %.49.4.i122 to i64
  %.69.4.i123 = icmp sgt i8 %.49.4.i122, -1
  br i1 %.69.4.i123, label %B102.i124, label %B360

B360:
  %.sink.i84162 = phi i64 [ %.53.lcssa4.i131, %B268.endif ], [ -1, %B102.i124 ], [ -1, %B268 ], [ -1, %B144.i91 ], [ -1, %B144.3.i118 ], [ -1, %B144.2.i109 ], [ -1, %B144.1.i100 ], [ -1, %B36.4.i120 ]
  store i64 6, ptr %retptr, align 8
  %retptr.repack145 = getelementptr i8, ptr %retptr, i64 8
  store i64 %.sink.i84162, ptr %retptr.repack145, align 8
  br label %common.ret

B372:
  %.419 = tail call i64 @llvm.smax.i64(i64 %.102.i135, i64 0)
  %spec.select = add nuw nsw i64 %.419, %.53.lcssa4.i131
  %lsr.iv.next = add nsw i64 %lsr.iv, -1
  %.174 = icmp sgt i64 %lsr.iv.next, 3
  br i1 %.174, label %B132, label %B396

B396:
  %at.1.5.0.lcssa = phi i64 [ %.53.lcssa4.i, %B100.endif ], [ %spec.select, %B372 ]
  store i64 0, ptr %retptr, align 8
  %retptr.repack143 = getelementptr i8, ptr %retptr, i64 8
  store i64 %at.1.5.0.lcssa, ptr %retptr.repack143, align 8
  br label %common.ret

B0.endif:
  %.63.lcssa5.i = phi i64 [ %.63.4.i, %B102.i ], [ %.63.3.i, %B36.3.i ], [ %.63.2.i, %B36.2.i ], [ %.63.1.i, %B36.1.i ], [ %0, %B36.i ]
  %.53.lcssa4.i = phi i64 [ %.53.4.i, %B102.i ], [ %.53.3.i, %B36.3.i ], [ %.53.2.i, %B36.2.i ], [ %.53.1.i, %B36.1.i ], [ %.53.i, %B36.i ]
  %.98.i = and i64 %.63.lcssa5.i, 1
  %.55 = icmp slt i64 %.53.lcssa4.i, 0
  %.58 = icmp ne i64 %.98.i, 0
  %or.cond = select i1 %.55, i1 true, i1 %.58
  %.64 = sub nsw i64 %arg.end, %.53.lcssa4.i
  %.65 = icmp sgt i64 %.63.lcssa5.i, %.64
  %or.cond163 = select i1 %or.cond, i1 true, i1 %.65
  br i1 %or.cond163, label %B92, label %B100.endif

B100.endif:
  %.174196.not = icmp eq i64 %.63.lcssa5.i, 0
  br i1 %.174196.not, label %B396, label %B132.preheader

B132.preheader:
  %.96.i = lshr i64 %.63.lcssa5.i, 1
  %18 = add nuw nsw i64 %.96.i, 3
  br label %B132

B132.endif:
  %.63.lcssa5.i75 = phi i64 [ %.63.4.i71, %B102.i69 ], [ %.63.3.i61, %B36.3.i56 ], [ %.63.2.i52, %B36.2.i47 ], [ %.63.1.i43, %B36.1.i38 ], [ %6, %B36.i31 ]
  %.53.lcssa4.i76 = phi i64 [ %.53.4.i72, %B102.i69 ], [ %.53.3.i59, %B36.3.i56 ], [ %.53.2.i50, %B36.2.i47 ], [ %.53.1.i41, %B36.1.i38 ], [ %.53.i34, %B36.i31 ]
  %.96.i77 = lshr i64 %.63.lcssa5.i75, 1
  %.98.i78 = and i64 %.63.lcssa5.i75, 1
  %19 = tail call { i64, i1 } @llvm.usub.with.overflow.i64(i64 0, i64 %.98.i78)
  %math = extractvalue { i64, i1 } %19, 0
  %ov = extractvalue { i64, i1 } %19, 1
  %.102.i80 = xor i64 %math, %.96.i77
  %.257 = icmp slt i64 %.53.lcssa4.i76, 0
  %or.cond139 = select i1 %.257, i1 true, i1 %ov
  %.264 = sub nsw i64 %arg.end, %.53.lcssa4.i76
  %.266 = icmp sgt i64 %.102.i80, %.264
  %or.cond140 = select i1 %or.cond139, i1 true, i1 %.266
  br i1 %or.cond140, label %B256, label %B216

B216.endif:
  switch i32 %.278, label %B216.endif.if.if [
    i32 -2, label %B268
    i32 0, label %B268
  ]

B216.endif.thread:
  switch i32 %.278, label %B216.endif.if.if [
    i32 -2, label %B256
    i32 0, label %B256
  ]

B216.endif.if.if:
  store ptr null, ptr %excinfo, align 8
  br label %common.ret

B268.endif:
  %.63.lcssa5.i130 = phi i64 [ %.63.4.i126, %B102.i124 ], [ %.63.3.i116, %B36.3.i111 ], [ %.63.2.i107, %B36.2.i102 ], [ %.63.1.i98, %B36.1.i93 ], [ %12, %B36.i86 ]
  %.53.lcssa4.i131 = phi i64 [ %.53.4.i127, %B102.i124 ], [ %.53.3.i114, %B36.3.i111 ], [ %.53.2.i105, %B36.2.i102 ], [ %.53.1.i96, %B36.1.i93 ], [ %.53.i89, %B36.i86 ]
  %.96.i132 = lshr i64 %.63.lcssa5.i130, 1
  %.98.i133 = and i64 %.63.lcssa5.i130, 1
  %.101.i134 = sub nsw i64 0, %.98.i133
  %.102.i135 = xor i64 %.96.i132, %.101.i134
  %.381 = icmp slt i64 %.102.i135, -1
  %.385 = sub nsw i64 %arg.end, %.53.lcssa4.i131
  %.387 = icmp sgt i64 %.102.i135, %.385
  %or.cond142 = select i1 %.381, i1 true, i1 %.387
  br i1 %or.cond142, label %B360, label %B372
}

define internal i32 @compiled_is_utf8(ptr %retptr, ptr %excinfo, ptr %arg.data, i64 %arg.at, i64 %arg.end) {
B0:
  %.21161 = icmp slt i64 %arg.at, %arg.end
  br i1 %.21161, label %B16.preheader, label %common.ret

B16.preheader:
  br label %B16

B4.loopexit:
  %.21 = icmp sgt i64 %arg.end, %.38
  br i1 %.21, label %B16, label %common.ret

B16:
  %at.4.1 = phi i64 [ %arg.at, %B16.preheader ], [ %.38, %B4.loopexit ], [ %.342.lcssa, %B328 ]
  %.30 = getelementptr i8, ptr %arg.data, i64 %at.4.1
  %.31 = load i8, ptr %.30, align 1
  %0 = zext i8 %.31 to i32
  %.38 = add i64 %at.4.1, 1
  %.45 = icmp sgt i8 %.31, -1
  br i1 %.45, label %B4.loopexit, label %B62

B62:
  %1 = trunc i32 %0 to i8
  %2 = add nsw i8 %1, 11
  %or.cond = icmp ult i8 %2, -51
  br i1 %or.cond, label %common.ret, label %B90

common.ret:
  %.sink = phi i8 [ 1, %B0 ], [ 0, %B252.preheader ], [ 0, %B252.1 ], [ 0, %B62 ], [ 0, %B252.lr.ph ], [ 1, %B328 ], [ 1, %B4.loopexit ], [ 0, %B90 ]
  store i8 %.sink, ptr %retptr, align 1
  ret i32 0

B90:
  %3 = trunc i32 %0 to i8
  %4 = trunc i32 %0 to i8
  %.73 = icmp ugt i8 %4, -33
  %.80 = icmp ult i8 %3, -16
  %spec.select = select i1 %.80, i64 2, i64 3
  %"$phi124.0.3.2" = select i1 %.73, i64 %spec.select, i64 1
  %.96 = sub nsw i64 %arg.end, %.38
  %.98 = icmp sgt i64 %"$phi124.0.3.2", %.96
  br i1 %.98, label %common.ret, label %B148

B148:
  switch i32 %0, label %B216 [
    i32 224, label %B252.lr.ph
    i32 240, label %B218.endif.fold.split
    i32 237, label %B218.endif.fold.split124
    i32 244, label %B218.endif.fold.split125
  ]

B216:
  br label %B252.lr.ph

B306:
  %5 = trunc i32 %0 to i8
  %6 = icmp ult i8 %5, -16
  br i1 %6, label %B328, label %B252.1

B252.1:
  %sunkaddr = getelementptr i8, ptr %arg.data, i64 %at.4.1
  %sunkaddr1 = getelementptr i8, ptr %sunkaddr, i64 3
  %.298.1 = load i8, ptr %sunkaddr1, align 1
  %or.cond126.1 = icmp sgt i8 %.298.1, -65
  br i1 %or.cond126.1, label %common.ret, label %B328

B328:
  %.342.lcssa = phi i64 [ %.342.peel, %B306.peel ], [ %9, %B252.1 ], [ %9, %B306 ]
  %.359 = icmp slt i64 %.342.lcssa, %arg.end
  br i1 %.359, label %B16, label %common.ret

B218.endif.fold.split:
  br label %B252.lr.ph

B218.endif.fold.split124:
  br label %B252.lr.ph

B218.endif.fold.split125:
  br label %B252.lr.ph

B252.lr.ph:
  %"$phi182.0.3.2116" = phi i64 [ 128, %B218.endif.fold.split124 ], [ 144, %B218.endif.fold.split ], [ 128, %B216 ], [ 160, %B148 ], [ 128, %B218.endif.fold.split125 ]
  %"$phi218.0.3.2" = phi i64 [ 159, %B218.endif.fold.split124 ], [ 191, %B218.endif.fold.split ], [ 191, %B216 ], [ 191, %B148 ], [ 143, %B218.endif.fold.split125 ]
  %.297.peel = getelementptr i8, ptr %arg.data, i64 %.38
  %.298.peel = load i8, ptr %.297.peel, align 1
  %.299.peel = zext i8 %.298.peel to i64
  %.306.peel = icmp ugt i64 %"$phi182.0.3.2116", %.299.peel
  %.312.peel = icmp ult i64 %"$phi218.0.3.2", %.299.peel
  %or.cond126.peel = select i1 %.306.peel, i1 true, i1 %.312.peel
  br i1 %or.cond126.peel, label %common.ret, label %B306.peel

B306.peel:
  %7 = trunc i32 %0 to i8
  %8 = icmp ugt i8 %7, -33
  %.342.peel = add nsw i64 %at.4.1, 2
  br i1 %8, label %B252.preheader, label %B328

B252.preheader:
  %9 = add i64 %spec.select, %.38
  %sunkaddr2 = getelementptr i8, ptr %arg.data, i64 %at.4.1
  %sunkaddr3 = getelementptr i8, ptr %sunkaddr2, i64 2
  %.298 = load i8, ptr %sunkaddr3, align 1
  %or.cond126 = icmp sgt i8 %.298, -65
  br i1 %or.cond126, label %common.ret, label %B306
}

define internal i32 @compiled_varlong(ptr %retptr, ptr %excinfo, ptr %arg.data, i64 %arg.at, i64 %arg.end) {
B0:
  %.22 = icmp slt i64 %arg.at, %arg.end
  br i1 %.22, label %B36.preheader, label %common.ret

B36.preheader:
  %0 = add i64 %arg.at, 10
  %.48 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %.49 = load i8, ptr %.48, align 1
  %promoted = zext i8 %.49 to i64
  %.56 = add nsw i64 %arg.at, 1
  %1 = and i64 %promoted, 127
  %.102 = icmp sgt i8 %.49, -1
  br i1 %.102, label %B130, label %B174

B80:
  %.48.9 = getelementptr i8, ptr %arg.data, i64 %.56.8
  %.49.9 = load i8, ptr %.48.9, align 1
  %.50.9 = zext i8 %.49.9 to i64
  %.66 = icmp ugt i8 %.49.9, 1
  br i1 %.66, label %common.ret, label %B96.thread

B96.thread:
  %.9356 = shl nuw i64 %.50.9, 63
  %.9557 = or i64 %.9356, %.95.8
  br label %B130

common.ret:
  %.sink88 = phi i64 [ 0, %B80 ], [ %.120, %B130 ], [ 0, %B174 ], [ 0, %B174.1 ], [ 0, %B174.2 ], [ 0, %B174.3 ], [ 0, %B174.4 ], [ 0, %B174.5 ], [ 0, %B174.6 ], [ 0, %B174.7 ], [ 0, %B174.8 ], [ 0, %B0 ]
  %.sink = phi i64 [ -1, %B80 ], [ %.5678, %B130 ], [ -1, %B174 ], [ -1, %B174.1 ], [ -1, %B174.2 ], [ -1, %B174.3 ], [ -1, %B174.4 ], [ -1, %B174.5 ], [ -1, %B174.6 ], [ -1, %B174.7 ], [ -1, %B174.8 ], [ -1, %B0 ]
  store i64 %.sink88, ptr %retptr, align 8
  %retptr.repack60 = getelementptr i8, ptr %retptr, i64 8
  store i64 %.sink, ptr %retptr.repack60, align 8
  ret i32 0

B130:
  %.5678 = phi i64 [ %0, %B96.thread ], [ %.56, %B36.preheader ], [ %.56.1, %B36.1 ], [ %.56.2, %B36.2 ], [ %.56.3, %B36.3 ], [ %.56.4, %B36.4 ], [ %.56.5, %B36.5 ], [ %.56.6, %B36.6 ], [ %.56.7, %B36.7 ], [ %.56.8, %B36.8 ]
  %.9559 = phi i64 [ %.9557, %B96.thread ], [ %1, %B36.preheader ], [ %.95.1, %B36.1 ], [ %.95.2, %B36.2 ], [ %.95.3, %B36.3 ], [ %.95.4, %B36.4 ], [ %.95.5, %B36.5 ], [ %.95.6, %B36.6 ], [ %.95.7, %B36.7 ], [ %.95.8, %B36.8 ]
  %.113 = lshr i64 %.9559, 1
  %.116 = and i64 %.9559, 1
  %.119 = sub nsw i64 0, %.116
  %.120 = xor i64 %.113, %.119
  br label %common.ret

B174:
  %exitcond.not = icmp eq i64 %.56, %arg.end
  br i1 %exitcond.not, label %common.ret, label %B36.1

B36.1:
  %sunkaddr = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr1 = getelementptr i8, ptr %sunkaddr, i64 1
  %.49.1 = load i8, ptr %sunkaddr1, align 1
  %promoted2 = zext i8 %.49.1 to i64
  %.56.1 = add i64 %arg.at, 2
  %2 = and i64 %promoted2, 127
  %.93.1 = shl nuw nsw i64 %2, 7
  %.95.1 = or i64 %.93.1, %1
  %.102.1 = icmp sgt i8 %.49.1, -1
  br i1 %.102.1, label %B130, label %B174.1

B174.1:
  %exitcond.1.not = icmp eq i64 %.56.1, %arg.end
  br i1 %exitcond.1.not, label %common.ret, label %B36.2

B36.2:
  %sunkaddr3 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr4 = getelementptr i8, ptr %sunkaddr3, i64 2
  %.49.2 = load i8, ptr %sunkaddr4, align 1
  %promoted5 = zext i8 %.49.2 to i64
  %.56.2 = add i64 %arg.at, 3
  %3 = and i64 %promoted5, 127
  %.93.2 = shl nuw nsw i64 %3, 14
  %.95.2 = or i64 %.93.2, %.95.1
  %.102.2 = icmp sgt i8 %.49.2, -1
  br i1 %.102.2, label %B130, label %B174.2

B174.2:
  %exitcond.2.not = icmp eq i64 %.56.2, %arg.end
  br i1 %exitcond.2.not, label %common.ret, label %B36.3

B36.3:
  %sunkaddr6 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr7 = getelementptr i8, ptr %sunkaddr6, i64 3
  %.49.3 = load i8, ptr %sunkaddr7, align 1
  %promoted8 = zext i8 %.49.3 to i64
  %.56.3 = add i64 %arg.at, 4
  %4 = and i64 %promoted8, 127
  %.93.3 = shl nuw nsw i64 %4, 21
  %.95.3 = or i64 %.93.3, %.95.2
  %.102.3 = icmp sgt i8 %.49.3, -1
  br i1 %.102.3, label %B130, label %B174.3

B174.3:
  %exitcond.3.not = icmp eq i64 %.56.3, %arg.end
  br i1 %exitcond.3.not, label %common.ret, label %B36.4

B36.4:
  %sunkaddr9 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr10 = getelementptr i8, ptr %sunkaddr9, i64 4
  %.49.4 = load i8, ptr %sunkaddr10, align 1
  %promoted11 = zext i8 %.49.4 to i64
  %.56.4 = add i64 %arg.at, 5
  %5 = and i64 %promoted11, 127
  %.93.4 = shl nuw nsw i64 %5, 28
  %.95.4 = or i64 %.93.4, %.95.3
  %.102.4 = icmp sgt i8 %.49.4, -1
  br i1 %.102.4, label %B130, label %B174.4

B174.4:
  %exitcond.4.not = icmp eq i64 %.56.4, %arg.end
  br i1 %exitcond.4.not, label %common.ret, label %B36.5

B36.5:
  %sunkaddr12 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr13 = getelementptr i8, ptr %sunkaddr12, i64 5
  %.49.5 = load i8, ptr %sunkaddr13, align 1
  %promoted14 = zext i8 %.49.5 to i64
  %.56.5 = add i64 %arg.at, 6
  %6 = and i64 %promoted14, 127
  %.93.5 = shl nuw nsw i64 %6, 35
  %.95.5 = or i64 %.93.5, %.95.4
  %.102.5 = icmp sgt i8 %.49.5, -1
  br i1 %.102.5, label %B130, label %B174.5

B174.5:
  %exitcond.5.not = icmp eq i64 %.56.5, %arg.end
  br i1 %exitcond.5.not, label %common.ret, label %B36.6

B36.6:
  %sunkaddr15 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr16 = getelementptr i8, ptr %sunkaddr15, i64 6
  %.49.6 = load i8, ptr %sunkaddr16, align 1
  %promoted17 = zext i8 %.49.6 to i64
  %.56.6 = add i64 %arg.at, 7
  %7 = and i64 %promoted17, 127
  %.93.6 = shl nuw nsw i64 %7, 42
  %.95.6 = or i64 %.93.6, %.95.5
  %.102.6 = icmp sgt i8 %.49.6, -1
  br i1 %.102.6, label %B130, label %B174.6

B174.6:
  %exitcond.6.not = icmp eq i64 %.56.6, %arg.end
  br i1 %exitcond.6.not, label %common.ret, label %B36.7

B36.7:
  %sunkaddr18 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr19 = getelementptr i8, ptr %sunkaddr18, i64 7
  %.49.7 = load i8, ptr %sunkaddr19, align 1
  %promoted20 = zext i8 %.49.7 to i64
  %.56.7 = add i64 %arg.at, 8
  %8 = and i64 %promoted20, 127
  %.93.7 = shl nuw nsw i64 %8, 49
  %.95.7 = or i64 %.93.7, %.95.6
  %.102.7 = icmp sgt i8 %.49.7, -1
  br i1 %.102.7, label %B130, label %B174.7

B174.7:
  %exitcond.7.not = icmp eq i64 %.56.7, %arg.end
  br i1 %exitcond.7.not, label %common.ret, label %B36.8

B36.8:
  %sunkaddr21 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr22 = getelementptr i8, ptr %sunkaddr21, i64 8
  %.49.8 = load i8, ptr %sunkaddr22, align 1
  %promoted23 = zext i8 %.49.8 to i64
  %.56.8 = add i64 %arg.at, 9
  %9 = and i64 %promoted23, 127
  %.93.8 = shl nuw nsw i64 %9, 56
  %.95.8 = or i64 %.93.8, %.95.7
  %.102.8 = icmp sgt i8 %.49.8, -1
  br i1 %.102.8, label %B130, label %B174.8

B174.8:
  %exitcond.8.not = icmp eq i64 %.56.8, %arg.end
  br i1 %exitcond.8.not, label %common.ret, label %B80
}

define i64 @scan(ptr %a0, i64 %a1, ptr %a2, ptr %a3) {
  %answer = alloca i64, align 8
  store i64 0, ptr %answer, align 8
  %status = call i32 @compiled_scan(ptr %answer, ptr null, ptr %a0, i64 %a1, ptr %a2, ptr %a3)
  %fault = load i64, ptr %answer, align 8
  ret i64 %fault
}
