; Written by scripts/kernels.py from record_kernel.py with numba 0.68.1.
declare void @llvm.memset.p0.i64(ptr captures(none), i8, i64, i1 immarg)
declare i64 @llvm.smax.i64(i64, i64)
declare { i64, i1 } @llvm.usub.with.overflow.i64(i64, i64)

define internal i32 @compiled_check(ptr %retptr, ptr %excinfo, ptr %arg.data, i64 %arg.at, i64 %arg.size, i64 %arg.count, i64 %arg.last_delta, i64 %arg.base_timestamp, i64 %arg.keys_required, i64 %arg.earliest, i64 %arg.latest, ptr %arg.refused, ptr %arg.numbers) {
B0.endif:
  %.323 = alloca [2 x i64], align 8
  %excinfo.2 = alloca ptr, align 8
  %.793 = alloca [2 x i64], align 8
  %excinfo.6 = alloca ptr, align 8
  store ptr null, ptr %excinfo.6, align 8
  %.136570.not = icmp slt i64 %arg.count, 1
  br i1 %.136570.not, label %B942, label %B54.lr.ph

B54.lr.ph:
  %const = bitcast i64 9223372036854775807 to i64
  br label %B54

B54:
  %delta.2.0577 = phi i64 [ -1, %B54.lr.ph ], [ %.102.i120, %B922 ]
  %out_of_range.2.0576 = phi i64 [ 0, %B54.lr.ph ], [ %out_of_range.3.2, %B922 ]
  %refusals.2.0575 = phi i64 [ 0, %B54.lr.ph ], [ %refusals.3.2, %B922 ]
  %largest.2.0574 = phi i64 [ -1, %B54.lr.ph ], [ %spec.select432, %B922 ]
  %at.9.0573 = phi i64 [ %arg.at, %B54.lr.ph ], [ %.269, %B922 ]
  %.142555571 = phi i64 [ 0, %B54.lr.ph ], [ %.149, %B922 ]
  %.149 = add nuw nsw i64 %.142555571, 1
  %sunkaddr = getelementptr i8, ptr %arg.numbers, i64 24
  store i64 %.142555571, ptr %sunkaddr, align 8
  %.22.i = icmp slt i64 %at.9.0573, %arg.size
  br i1 %.22.i, label %B36.i, label %B158

B36.i:
  %.48.i = getelementptr i8, ptr %arg.data, i64 %at.9.0573
  %.49.i = load i8, ptr %.48.i, align 1
  %promoted = zext i8 %.49.i to i64
  %.53.i = add nsw i64 %at.9.0573, 1
  %0 = and i64 %promoted, 127
  %.69.i = icmp sgt i8 %.49.i, -1
  br i1 %.69.i, label %B54.endif, label %B144.i

B102.i:
  %1 = trunc i64 %5 to i8
  %.61.4.i = shl nuw nsw i64 %5, 28
  %.63.4.i = or i64 %.61.4.i, %.63.3.i
  %.53.4.i = add nsw i64 %at.9.0573, 5
  %.79.not.i = icmp ult i8 %1, 16
  br i1 %.79.not.i, label %B54.endif, label %B158

B144.i:
  %.125.i = icmp slt i64 %.53.i, %arg.size
  br i1 %.125.i, label %B36.1.i, label %B158

B36.1.i:
  %sunkaddr408 = getelementptr i8, ptr %arg.data, i64 %at.9.0573
  %sunkaddr409 = getelementptr i8, ptr %sunkaddr408, i64 1
  %.49.1.i = load i8, ptr %sunkaddr409, align 1
  %promoted410 = zext i8 %.49.1.i to i64
  %.53.1.i = add nsw i64 %at.9.0573, 2
  %2 = and i64 %promoted410, 127
  %.61.1.i = shl nuw nsw i64 %2, 7
  %.63.1.i = or i64 %.61.1.i, %0
  %.69.1.i = icmp sgt i8 %.49.1.i, -1
  br i1 %.69.1.i, label %B54.endif, label %B144.1.i

B144.1.i:
  %.125.1.i = icmp slt i64 %.53.1.i, %arg.size
  br i1 %.125.1.i, label %B36.2.i, label %B158

B36.2.i:
  %sunkaddr411 = getelementptr i8, ptr %arg.data, i64 %at.9.0573
  %sunkaddr412 = getelementptr i8, ptr %sunkaddr411, i64 2
  %.49.2.i = load i8, ptr %sunkaddr412, align 1
  %promoted413 = zext i8 %.49.2.i to i64
  %.53.2.i = add nsw i64 %at.9.0573, 3
  %3 = and i64 %promoted413, 127
  %.61.2.i = shl nuw nsw i64 %3, 14
  %.63.2.i = or i64 %.61.2.i, %.63.1.i
  %.69.2.i = icmp sgt i8 %.49.2.i, -1
  br i1 %.69.2.i, label %B54.endif, label %B144.2.i

B144.2.i:
  %.125.2.i = icmp slt i64 %.53.2.i, %arg.size
  br i1 %.125.2.i, label %B36.3.i, label %B158

B36.3.i:
  %sunkaddr414 = getelementptr i8, ptr %arg.data, i64 %at.9.0573
  %sunkaddr415 = getelementptr i8, ptr %sunkaddr414, i64 3
  %.49.3.i = load i8, ptr %sunkaddr415, align 1
  %promoted416 = zext i8 %.49.3.i to i64
  %.53.3.i = add nsw i64 %at.9.0573, 4
  %4 = and i64 %promoted416, 127
  %.61.3.i = shl nuw nsw i64 %4, 21
  %.63.3.i = or i64 %.61.3.i, %.63.2.i
  %.69.3.i = icmp sgt i8 %.49.3.i, -1
  br i1 %.69.3.i, label %B54.endif, label %B144.3.i

B144.3.i:
  %.125.3.i = icmp slt i64 %.53.3.i, %arg.size
  br i1 %.125.3.i, label %B36.4.i, label %B158

B36.4.i:
  %sunkaddr417 = getelementptr i8, ptr %arg.data, i64 %at.9.0573
  %sunkaddr418 = getelementptr i8, ptr %sunkaddr417, i64 4
  %.49.4.i = load i8, ptr %sunkaddr418, align 1
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
  %sunkaddr419 = getelementptr inbounds i8, ptr %.323, i64 8
  %.337.fca.1.load = load i64, ptr %sunkaddr419, align 8
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
  %or.cond420 = select i1 %.409, i1 %.414, i1 false
  br i1 %or.cond420, label %B348, label %B354

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
  %promoted420 = zext i8 %.49.i73 to i64
  %.53.i74 = add nuw nsw i64 %.337.fca.1.load, 1
  %6 = and i64 %promoted420, 127
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
  %sunkaddr421 = getelementptr i8, ptr %arg.data, i64 %.337.fca.1.load
  %sunkaddr422 = getelementptr i8, ptr %sunkaddr421, i64 1
  %.49.1.i80 = load i8, ptr %sunkaddr422, align 1
  %promoted423 = zext i8 %.49.1.i80 to i64
  %.53.1.i81 = add nuw nsw i64 %.337.fca.1.load, 2
  %8 = and i64 %promoted423, 127
  %.61.1.i82 = shl nuw nsw i64 %8, 7
  %.63.1.i83 = or i64 %.61.1.i82, %6
  %.69.1.i84 = icmp sgt i8 %.49.1.i80, -1
  br i1 %.69.1.i84, label %B354.endif, label %B144.1.i85

B144.1.i85:
  %.125.1.i86 = icmp ult i64 %.53.1.i81, %.269
  br i1 %.125.1.i86, label %B36.2.i87, label %B444

B36.2.i87:
  %sunkaddr424 = getelementptr i8, ptr %arg.data, i64 %.337.fca.1.load
  %sunkaddr425 = getelementptr i8, ptr %sunkaddr424, i64 2
  %.49.2.i89 = load i8, ptr %sunkaddr425, align 1
  %promoted426 = zext i8 %.49.2.i89 to i64
  %.53.2.i90 = add nuw nsw i64 %.337.fca.1.load, 3
  %9 = and i64 %promoted426, 127
  %.61.2.i91 = shl nuw nsw i64 %9, 14
  %.63.2.i92 = or i64 %.61.2.i91, %.63.1.i83
  %.69.2.i93 = icmp sgt i8 %.49.2.i89, -1
  br i1 %.69.2.i93, label %B354.endif, label %B144.2.i94

B144.2.i94:
  %.125.2.i95 = icmp ult i64 %.53.2.i90, %.269
  br i1 %.125.2.i95, label %B36.3.i96, label %B444

B36.3.i96:
  %sunkaddr427 = getelementptr i8, ptr %arg.data, i64 %.337.fca.1.load
  %sunkaddr428 = getelementptr i8, ptr %sunkaddr427, i64 3
  %.49.3.i98 = load i8, ptr %sunkaddr428, align 1
  %promoted429 = zext i8 %.49.3.i98 to i64
  %.53.3.i99 = add nuw nsw i64 %.337.fca.1.load, 4
  %10 = and i64 %promoted429, 127
  %.61.3.i100 = shl nuw nsw i64 %10, 21
  %.63.3.i101 = or i64 %.61.3.i100, %.63.2.i92
  %.69.3.i102 = icmp sgt i8 %.49.3.i98, -1
  br i1 %.69.3.i102, label %B354.endif, label %B144.3.i103

B144.3.i103:
  %.125.3.i104 = icmp ult i64 %.53.3.i99, %.269
  br i1 %.125.3.i104, label %B36.4.i105, label %B444

B36.4.i105:
  %sunkaddr430 = getelementptr i8, ptr %arg.data, i64 %.337.fca.1.load
  %sunkaddr431 = getelementptr i8, ptr %sunkaddr430, i64 4
  %.49.4.i107 = load i8, ptr %sunkaddr431, align 1
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
  %promoted432 = zext i8 %.49.i128 to i64
  %.53.i129 = add nuw nsw i64 %.53.lcssa4.i116, 1
  %12 = and i64 %promoted432, 127
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
  %sunkaddr433 = getelementptr i8, ptr %arg.data, i64 %.53.lcssa4.i116
  %sunkaddr434 = getelementptr i8, ptr %sunkaddr433, i64 1
  %.49.1.i135 = load i8, ptr %sunkaddr434, align 1
  %promoted435 = zext i8 %.49.1.i135 to i64
  %.53.1.i136 = add nuw nsw i64 %.53.lcssa4.i116, 2
  %14 = and i64 %promoted435, 127
  %.61.1.i137 = shl nuw nsw i64 %14, 7
  %.63.1.i138 = or i64 %.61.1.i137, %12
  %.69.1.i139 = icmp sgt i8 %.49.1.i135, -1
  br i1 %.69.1.i139, label %B450.endif, label %B144.1.i140

B144.1.i140:
  %.125.1.i141 = icmp ult i64 %.53.1.i136, %.269
  br i1 %.125.1.i141, label %B36.2.i142, label %B532

B36.2.i142:
  %sunkaddr436 = getelementptr i8, ptr %arg.data, i64 %.53.lcssa4.i116
  %sunkaddr437 = getelementptr i8, ptr %sunkaddr436, i64 2
  %.49.2.i144 = load i8, ptr %sunkaddr437, align 1
  %promoted438 = zext i8 %.49.2.i144 to i64
  %.53.2.i145 = add nuw nsw i64 %.53.lcssa4.i116, 3
  %15 = and i64 %promoted438, 127
  %.61.2.i146 = shl nuw nsw i64 %15, 14
  %.63.2.i147 = or i64 %.61.2.i146, %.63.1.i138
  %.69.2.i148 = icmp sgt i8 %.49.2.i144, -1
  br i1 %.69.2.i148, label %B450.endif, label %B144.2.i149

B144.2.i149:
  %.125.2.i150 = icmp ult i64 %.53.2.i145, %.269
  br i1 %.125.2.i150, label %B36.3.i151, label %B532

B36.3.i151:
  %sunkaddr439 = getelementptr i8, ptr %arg.data, i64 %.53.lcssa4.i116
  %sunkaddr440 = getelementptr i8, ptr %sunkaddr439, i64 3
  %.49.3.i153 = load i8, ptr %sunkaddr440, align 1
  %promoted441 = zext i8 %.49.3.i153 to i64
  %.53.3.i154 = add nuw nsw i64 %.53.lcssa4.i116, 4
  %16 = and i64 %promoted441, 127
  %.61.3.i155 = shl nuw nsw i64 %16, 21
  %.63.3.i156 = or i64 %.61.3.i155, %.63.2.i147
  %.69.3.i157 = icmp sgt i8 %.49.3.i153, -1
  br i1 %.69.3.i157, label %B450.endif, label %B144.3.i158

B144.3.i158:
  %.125.3.i159 = icmp ult i64 %.53.3.i154, %.269
  br i1 %.125.3.i159, label %B36.4.i160, label %B532

B36.4.i160:
  %sunkaddr442 = getelementptr i8, ptr %arg.data, i64 %.53.lcssa4.i116
  %sunkaddr443 = getelementptr i8, ptr %sunkaddr442, i64 4
  %.49.4.i162 = load i8, ptr %sunkaddr443, align 1
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
  %promoted444 = zext i8 %.49.i183 to i64
  %.53.i184 = add nuw nsw i64 %spec.select, 1
  %18 = and i64 %promoted444, 127
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
  %sunkaddr445 = getelementptr i8, ptr %arg.data, i64 %spec.select
  %sunkaddr446 = getelementptr i8, ptr %sunkaddr445, i64 1
  %.49.1.i190 = load i8, ptr %sunkaddr446, align 1
  %promoted447 = zext i8 %.49.1.i190 to i64
  %.53.1.i191 = add nuw nsw i64 %spec.select, 2
  %20 = and i64 %promoted447, 127
  %.61.1.i192 = shl nuw nsw i64 %20, 7
  %.63.1.i193 = or i64 %.61.1.i192, %18
  %.69.1.i194 = icmp sgt i8 %.49.1.i190, -1
  br i1 %.69.1.i194, label %B560.endif, label %B144.1.i195

B144.1.i195:
  %.125.1.i196 = icmp ult i64 %.53.1.i191, %.269
  br i1 %.125.1.i196, label %B36.2.i197, label %B642

B36.2.i197:
  %sunkaddr448 = getelementptr i8, ptr %arg.data, i64 %spec.select
  %sunkaddr449 = getelementptr i8, ptr %sunkaddr448, i64 2
  %.49.2.i199 = load i8, ptr %sunkaddr449, align 1
  %promoted450 = zext i8 %.49.2.i199 to i64
  %.53.2.i200 = add nuw nsw i64 %spec.select, 3
  %21 = and i64 %promoted450, 127
  %.61.2.i201 = shl nuw nsw i64 %21, 14
  %.63.2.i202 = or i64 %.61.2.i201, %.63.1.i193
  %.69.2.i203 = icmp sgt i8 %.49.2.i199, -1
  br i1 %.69.2.i203, label %B560.endif, label %B144.2.i204

B144.2.i204:
  %.125.2.i205 = icmp ult i64 %.53.2.i200, %.269
  br i1 %.125.2.i205, label %B36.3.i206, label %B642

B36.3.i206:
  %sunkaddr451 = getelementptr i8, ptr %arg.data, i64 %spec.select
  %sunkaddr452 = getelementptr i8, ptr %sunkaddr451, i64 3
  %.49.3.i208 = load i8, ptr %sunkaddr452, align 1
  %promoted453 = zext i8 %.49.3.i208 to i64
  %.53.3.i209 = add nuw nsw i64 %spec.select, 4
  %22 = and i64 %promoted453, 127
  %.61.3.i210 = shl nuw nsw i64 %22, 21
  %.63.3.i211 = or i64 %.61.3.i210, %.63.2.i202
  %.69.3.i212 = icmp sgt i8 %.49.3.i208, -1
  br i1 %.69.3.i212, label %B560.endif, label %B144.3.i213

B144.3.i213:
  %.125.3.i214 = icmp ult i64 %.53.3.i209, %.269
  br i1 %.125.3.i214, label %B36.4.i215, label %B642

B36.4.i215:
  %sunkaddr454 = getelementptr i8, ptr %arg.data, i64 %spec.select
  %sunkaddr455 = getelementptr i8, ptr %sunkaddr454, i64 4
  %.49.4.i217 = load i8, ptr %sunkaddr455, align 1
  %23 = zext i8 %.49.4.i217 to i64
  %.69.4.i218 = icmp sgt i8 %.49.4.i217, -1
  br i1 %.69.4.i218, label %B102.i219, label %B642

B642:
  store i64 5, ptr %retptr, align 8
  br label %common.ret

B648:
  %.777 = tail call i64 @llvm.smax.i64(i64 %.102.i230, i64 0)
  %spec.select427 = add nuw nsw i64 %.777, %.53.lcssa4.i226
  call void @llvm.memset.p0.i64(ptr align 8 dereferenceable(16) %.793, i8 0, i64 16, i1 false)
  %.797 = call i32 @compiled_headers(ptr %.793, ptr %excinfo.6, ptr %arg.data, i64 %spec.select427, i64 %.269)
  %sunkaddr456 = getelementptr inbounds i8, ptr %.793, i64 8
  %.807.fca.1.load = load i64, ptr %sunkaddr456, align 8
  %cond = icmp eq i32 %.797, 0
  br i1 %cond, label %B670.endif, label %B670.if.if

B714:
  store i64 %.807.fca.0.load, ptr %retptr, align 8
  br label %common.ret

B722:
  %.881.not = icmp eq i64 %.807.fca.1.load, %.269
  br i1 %.881.not, label %B740, label %B734

B734:
  store i64 8, ptr %retptr, align 8
  br label %common.ret

B740:
  %24 = icmp ne i64 %arg.keys_required, 0
  %.928 = icmp ne i64 %.98.i173, 0
  %or.cond428 = and i1 %24, %.928
  br i1 %or.cond428, label %B804, label %B768

B768:
  %.953.not = icmp eq i64 %.454, -1
  br i1 %.953.not, label %B922, label %B780

B780:
  %.961 = icmp slt i64 %.454, %arg.earliest
  %.971 = icmp sgt i64 %.454, %arg.latest
  %or.cond429 = select i1 %.961, i1 true, i1 %.971
  br i1 %or.cond429, label %B804, label %B922

B804:
  %.978 = icmp slt i64 %refusals.2.0575, 100
  br i1 %.978, label %B826, label %B898

B826:
  %.988.idx = mul i64 %refusals.2.0575, 24
  %.988 = getelementptr i8, ptr %arg.refused, i64 %.988.idx
  store i64 %.102.i120, ptr %.988, align 8
  %.994 = getelementptr i8, ptr %.988, i64 8
  store i64 %.454, ptr %.994, align 8
  %spec.select430 = zext i1 %or.cond428 to i64
  %.1011 = getelementptr i8, ptr %.988, i64 16
  store i64 %spec.select430, ptr %.1011, align 8
  br label %B898

B898:
  %.1020 = add nsw i64 %refusals.2.0575, 1
  %not.or.cond428 = xor i1 %or.cond428, true
  %.1039 = zext i1 %not.or.cond428 to i64
  %spec.select431 = add nsw i64 %out_of_range.2.0576, %.1039
  br label %B922

B922:
  %refusals.3.2 = phi i64 [ %.1020, %B898 ], [ %refusals.2.0575, %B768 ], [ %refusals.2.0575, %B780 ]
  %out_of_range.3.2 = phi i64 [ %spec.select431, %B898 ], [ %out_of_range.2.0576, %B768 ], [ %out_of_range.2.0576, %B780 ]
  %spec.select432 = tail call i64 @llvm.smax.i64(i64 %.454, i64 %largest.2.0574)
  %exitcond.not = icmp eq i64 %arg.count, %.149
  br i1 %exitcond.not, label %B942, label %B54

B942:
  %at.9.0.lcssa = phi i64 [ %arg.at, %B0.endif ], [ %.269, %B922 ]
  %largest.2.0.lcssa = phi i64 [ -1, %B0.endif ], [ %spec.select432, %B922 ]
  %refusals.2.0.lcssa = phi i64 [ 0, %B0.endif ], [ %refusals.3.2, %B922 ]
  %out_of_range.2.0.lcssa = phi i64 [ 0, %B0.endif ], [ %out_of_range.3.2, %B922 ]
  %.1119.not = icmp eq i64 %at.9.0.lcssa, %arg.size
  br i1 %.1119.not, label %B958, label %B954

B954:
  store i64 9, ptr %retptr, align 8
  br label %common.ret

B958:
  store i64 %largest.2.0.lcssa, ptr %arg.numbers, align 8
  %.1143 = getelementptr i8, ptr %arg.numbers, i64 8
  store i64 %refusals.2.0.lcssa, ptr %.1143, align 8
  %.1149 = getelementptr i8, ptr %arg.numbers, i64 16
  store i64 %out_of_range.2.0.lcssa, ptr %.1149, align 8
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
  %or.cond419 = select i1 %or.cond, i1 true, i1 %.231
  br i1 %or.cond419, label %B158, label %B164

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
  %.515 = icmp sle i64 %.102.i120, %delta.2.0577
  %.521 = icmp sgt i64 %.102.i120, %arg.last_delta
  %or.cond422 = select i1 %.515, i1 true, i1 %.521
  br i1 %or.cond422, label %B444, label %B450

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
  %or.cond424 = select i1 %.609, i1 true, i1 %.615
  br i1 %or.cond424, label %B532, label %B538

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
  %or.cond426 = select i1 %.720, i1 true, i1 %.726
  br i1 %or.cond426, label %B642, label %B648

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
  %sunkaddr52 = getelementptr i8, ptr %sunkaddr, i64 1
  %.49.1.i = load i8, ptr %sunkaddr52, align 1
  %promoted53 = zext i8 %.49.1.i to i64
  %.53.1.i = add nsw i64 %arg.at, 2
  %2 = and i64 %promoted53, 127
  %.61.1.i = shl nuw nsw i64 %2, 7
  %.63.1.i = or i64 %.61.1.i, %0
  %.69.1.i = icmp sgt i8 %.49.1.i, -1
  br i1 %.69.1.i, label %B0.endif, label %B144.1.i

B144.1.i:
  %.125.1.i = icmp slt i64 %.53.1.i, %arg.end
  br i1 %.125.1.i, label %B36.2.i, label %B92

B36.2.i:
  %sunkaddr54 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr55 = getelementptr i8, ptr %sunkaddr54, i64 2
  %.49.2.i = load i8, ptr %sunkaddr55, align 1
  %promoted56 = zext i8 %.49.2.i to i64
  %.53.2.i = add nsw i64 %arg.at, 3
  %3 = and i64 %promoted56, 127
  %.61.2.i = shl nuw nsw i64 %3, 14
  %.63.2.i = or i64 %.61.2.i, %.63.1.i
  %.69.2.i = icmp sgt i8 %.49.2.i, -1
  br i1 %.69.2.i, label %B0.endif, label %B144.2.i

B144.2.i:
  %.125.2.i = icmp slt i64 %.53.2.i, %arg.end
  br i1 %.125.2.i, label %B36.3.i, label %B92

B36.3.i:
  %sunkaddr57 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr58 = getelementptr i8, ptr %sunkaddr57, i64 3
  %.49.3.i = load i8, ptr %sunkaddr58, align 1
  %promoted59 = zext i8 %.49.3.i to i64
  %.53.3.i = add nsw i64 %arg.at, 4
  %4 = and i64 %promoted59, 127
  %.61.3.i = shl nuw nsw i64 %4, 21
  %.63.3.i = or i64 %.61.3.i, %.63.2.i
  %.69.3.i = icmp sgt i8 %.49.3.i, -1
  br i1 %.69.3.i, label %B0.endif, label %B144.3.i

B144.3.i:
  %.125.3.i = icmp slt i64 %.53.3.i, %arg.end
  br i1 %.125.3.i, label %B36.4.i, label %B92

B36.4.i:
  %sunkaddr60 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr61 = getelementptr i8, ptr %sunkaddr60, i64 4
  %.49.4.i = load i8, ptr %sunkaddr61, align 1
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
  %lsr.iv50 = phi i64 [ %18, %B132.preheader ], [ %lsr.iv.next51, %B372 ]
  %at.1.5.0199 = phi i64 [ %.53.lcssa4.i, %B132.preheader ], [ %spec.select, %B372 ]
  %.22.i27 = icmp slt i64 %at.1.5.0199, %arg.end
  br i1 %.22.i27, label %B36.i31, label %B256

B36.i31:
  %.48.i32 = getelementptr i8, ptr %arg.data, i64 %at.1.5.0199
  %.49.i33 = load i8, ptr %.48.i32, align 1
  %promoted62 = zext i8 %.49.i33 to i64
  %.53.i34 = add nuw nsw i64 %at.1.5.0199, 1
  %6 = and i64 %promoted62, 127
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
  %sunkaddr63 = getelementptr i8, ptr %arg.data, i64 %at.1.5.0199
  %sunkaddr64 = getelementptr i8, ptr %sunkaddr63, i64 1
  %.49.1.i40 = load i8, ptr %sunkaddr64, align 1
  %promoted65 = zext i8 %.49.1.i40 to i64
  %.53.1.i41 = add nsw i64 %at.1.5.0199, 2
  %8 = and i64 %promoted65, 127
  %.61.1.i42 = shl nuw nsw i64 %8, 7
  %.63.1.i43 = or i64 %.61.1.i42, %6
  %.69.1.i44 = icmp sgt i8 %.49.1.i40, -1
  br i1 %.69.1.i44, label %B132.endif, label %B144.1.i45

B144.1.i45:
  %.125.1.i46 = icmp slt i64 %.53.1.i41, %arg.end
  br i1 %.125.1.i46, label %B36.2.i47, label %B256

B36.2.i47:
  %sunkaddr66 = getelementptr i8, ptr %arg.data, i64 %at.1.5.0199
  %sunkaddr67 = getelementptr i8, ptr %sunkaddr66, i64 2
  %.49.2.i49 = load i8, ptr %sunkaddr67, align 1
  %promoted68 = zext i8 %.49.2.i49 to i64
  %.53.2.i50 = add nsw i64 %at.1.5.0199, 3
  %9 = and i64 %promoted68, 127
  %.61.2.i51 = shl nuw nsw i64 %9, 14
  %.63.2.i52 = or i64 %.61.2.i51, %.63.1.i43
  %.69.2.i53 = icmp sgt i8 %.49.2.i49, -1
  br i1 %.69.2.i53, label %B132.endif, label %B144.2.i54

B144.2.i54:
  %.125.2.i55 = icmp slt i64 %.53.2.i50, %arg.end
  br i1 %.125.2.i55, label %B36.3.i56, label %B256

B36.3.i56:
  %sunkaddr69 = getelementptr i8, ptr %arg.data, i64 %at.1.5.0199
  %sunkaddr70 = getelementptr i8, ptr %sunkaddr69, i64 3
  %.49.3.i58 = load i8, ptr %sunkaddr70, align 1
  %promoted71 = zext i8 %.49.3.i58 to i64
  %.53.3.i59 = add nsw i64 %at.1.5.0199, 4
  %10 = and i64 %promoted71, 127
  %.61.3.i60 = shl nuw nsw i64 %10, 21
  %.63.3.i61 = or i64 %.61.3.i60, %.63.2.i52
  %.69.3.i62 = icmp sgt i8 %.49.3.i58, -1
  br i1 %.69.3.i62, label %B132.endif, label %B144.3.i63

B144.3.i63:
  %.125.3.i64 = icmp slt i64 %.53.3.i59, %arg.end
  br i1 %.125.3.i64, label %B36.4.i65, label %B256

B36.4.i65:
  %sunkaddr72 = getelementptr i8, ptr %arg.data, i64 %at.1.5.0199
  %sunkaddr73 = getelementptr i8, ptr %sunkaddr72, i64 4
  %.49.4.i67 = load i8, ptr %sunkaddr73, align 1
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
  %.sink.i29153 = phi i64 [ %.53.lcssa4.i76, %B216.endif.thread ], [ %.53.lcssa4.i76, %B216.endif.thread ], [ -1, %B36.4.i65 ], [ -1, %B144.1.i45 ], [ -1, %B144.2.i54 ], [ -1, %B144.3.i63 ], [ -1, %B144.i36 ], [ -1, %B132 ], [ -1, %B102.i69 ], [ %.53.lcssa4.i76, %B132.endif ]
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
  %promoted74 = zext i8 %.49.i88 to i64
  %.53.i89 = add nuw nsw i64 %.271, 1
  %12 = and i64 %promoted74, 127
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
  %sunkaddr75 = getelementptr i8, ptr %arg.data, i64 %.271
  %sunkaddr76 = getelementptr i8, ptr %sunkaddr75, i64 1
  %.49.1.i95 = load i8, ptr %sunkaddr76, align 1
  %promoted77 = zext i8 %.49.1.i95 to i64
  %.53.1.i96 = add nuw nsw i64 %.271, 2
  %14 = and i64 %promoted77, 127
  %.61.1.i97 = shl nuw nsw i64 %14, 7
  %.63.1.i98 = or i64 %.61.1.i97, %12
  %.69.1.i99 = icmp sgt i8 %.49.1.i95, -1
  br i1 %.69.1.i99, label %B268.endif, label %B144.1.i100

B144.1.i100:
  %.125.1.i101 = icmp slt i64 %.53.1.i96, %arg.end
  br i1 %.125.1.i101, label %B36.2.i102, label %B360

B36.2.i102:
  %sunkaddr78 = getelementptr i8, ptr %arg.data, i64 %.271
  %sunkaddr79 = getelementptr i8, ptr %sunkaddr78, i64 2
  %.49.2.i104 = load i8, ptr %sunkaddr79, align 1
  %promoted80 = zext i8 %.49.2.i104 to i64
  %.53.2.i105 = add nuw nsw i64 %.271, 3
  %15 = and i64 %promoted80, 127
  %.61.2.i106 = shl nuw nsw i64 %15, 14
  %.63.2.i107 = or i64 %.61.2.i106, %.63.1.i98
  %.69.2.i108 = icmp sgt i8 %.49.2.i104, -1
  br i1 %.69.2.i108, label %B268.endif, label %B144.2.i109

B144.2.i109:
  %.125.2.i110 = icmp slt i64 %.53.2.i105, %arg.end
  br i1 %.125.2.i110, label %B36.3.i111, label %B360

B36.3.i111:
  %sunkaddr81 = getelementptr i8, ptr %arg.data, i64 %.271
  %sunkaddr82 = getelementptr i8, ptr %sunkaddr81, i64 3
  %.49.3.i113 = load i8, ptr %sunkaddr82, align 1
  %promoted83 = zext i8 %.49.3.i113 to i64
  %.53.3.i114 = add nuw nsw i64 %.271, 4
  %16 = and i64 %promoted83, 127
  %.61.3.i115 = shl nuw nsw i64 %16, 21
  %.63.3.i116 = or i64 %.61.3.i115, %.63.2.i107
  %.69.3.i117 = icmp sgt i8 %.49.3.i113, -1
  br i1 %.69.3.i117, label %B268.endif, label %B144.3.i118

B144.3.i118:
  %.125.3.i119 = icmp slt i64 %.53.3.i114, %arg.end
  br i1 %.125.3.i119, label %B36.4.i120, label %B360

B36.4.i120:
  %sunkaddr84 = getelementptr i8, ptr %arg.data, i64 %.271
  %sunkaddr85 = getelementptr i8, ptr %sunkaddr84, i64 4
  %.49.4.i122 = load i8, ptr %sunkaddr85, align 1
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
  %lsr.iv.next51 = add nsw i64 %lsr.iv50, -1
  %.174 = icmp sgt i64 %lsr.iv.next51, 2
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
  %18 = add nuw nsw i64 %.96.i, 2
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
  %at.4.1 = phi i64 [ %arg.at, %B16.preheader ], [ %.342.lcssa, %B328 ], [ %.38, %B4.loopexit ]
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
  %.sink = phi i8 [ 1, %B0 ], [ 0, %B90 ], [ 1, %B4.loopexit ], [ 1, %B328 ], [ 0, %B252.lr.ph ], [ 0, %B62 ], [ 0, %B252.1 ], [ 0, %B252.preheader ]
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
  %sunkaddr2 = getelementptr i8, ptr %sunkaddr, i64 3
  %.298.1 = load i8, ptr %sunkaddr2, align 1
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
  %sunkaddr4 = getelementptr i8, ptr %arg.data, i64 %at.4.1
  %sunkaddr5 = getelementptr i8, ptr %sunkaddr4, i64 2
  %.298 = load i8, ptr %sunkaddr5, align 1
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
  %sunkaddr2 = getelementptr i8, ptr %sunkaddr, i64 1
  %.49.1 = load i8, ptr %sunkaddr2, align 1
  %promoted3 = zext i8 %.49.1 to i64
  %.56.1 = add i64 %arg.at, 2
  %2 = and i64 %promoted3, 127
  %.93.1 = shl nuw nsw i64 %2, 7
  %.95.1 = or i64 %.93.1, %1
  %.102.1 = icmp sgt i8 %.49.1, -1
  br i1 %.102.1, label %B130, label %B174.1

B174.1:
  %exitcond.1.not = icmp eq i64 %.56.1, %arg.end
  br i1 %exitcond.1.not, label %common.ret, label %B36.2

B36.2:
  %sunkaddr5 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr6 = getelementptr i8, ptr %sunkaddr5, i64 2
  %.49.2 = load i8, ptr %sunkaddr6, align 1
  %promoted7 = zext i8 %.49.2 to i64
  %.56.2 = add i64 %arg.at, 3
  %3 = and i64 %promoted7, 127
  %.93.2 = shl nuw nsw i64 %3, 14
  %.95.2 = or i64 %.93.2, %.95.1
  %.102.2 = icmp sgt i8 %.49.2, -1
  br i1 %.102.2, label %B130, label %B174.2

B174.2:
  %exitcond.2.not = icmp eq i64 %.56.2, %arg.end
  br i1 %exitcond.2.not, label %common.ret, label %B36.3

B36.3:
  %sunkaddr8 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr9 = getelementptr i8, ptr %sunkaddr8, i64 3
  %.49.3 = load i8, ptr %sunkaddr9, align 1
  %promoted10 = zext i8 %.49.3 to i64
  %.56.3 = add i64 %arg.at, 4
  %4 = and i64 %promoted10, 127
  %.93.3 = shl nuw nsw i64 %4, 21
  %.95.3 = or i64 %.93.3, %.95.2
  %.102.3 = icmp sgt i8 %.49.3, -1
  br i1 %.102.3, label %B130, label %B174.3

B174.3:
  %exitcond.3.not = icmp eq i64 %.56.3, %arg.end
  br i1 %exitcond.3.not, label %common.ret, label %B36.4

B36.4:
  %sunkaddr11 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr12 = getelementptr i8, ptr %sunkaddr11, i64 4
  %.49.4 = load i8, ptr %sunkaddr12, align 1
  %promoted13 = zext i8 %.49.4 to i64
  %.56.4 = add i64 %arg.at, 5
  %5 = and i64 %promoted13, 127
  %.93.4 = shl nuw nsw i64 %5, 28
  %.95.4 = or i64 %.93.4, %.95.3
  %.102.4 = icmp sgt i8 %.49.4, -1
  br i1 %.102.4, label %B130, label %B174.4

B174.4:
  %exitcond.4.not = icmp eq i64 %.56.4, %arg.end
  br i1 %exitcond.4.not, label %common.ret, label %B36.5

B36.5:
  %sunkaddr14 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr15 = getelementptr i8, ptr %sunkaddr14, i64 5
  %.49.5 = load i8, ptr %sunkaddr15, align 1
  %promoted16 = zext i8 %.49.5 to i64
  %.56.5 = add i64 %arg.at, 6
  %6 = and i64 %promoted16, 127
  %.93.5 = shl nuw nsw i64 %6, 35
  %.95.5 = or i64 %.93.5, %.95.4
  %.102.5 = icmp sgt i8 %.49.5, -1
  br i1 %.102.5, label %B130, label %B174.5

B174.5:
  %exitcond.5.not = icmp eq i64 %.56.5, %arg.end
  br i1 %exitcond.5.not, label %common.ret, label %B36.6

B36.6:
  %sunkaddr17 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr18 = getelementptr i8, ptr %sunkaddr17, i64 6
  %.49.6 = load i8, ptr %sunkaddr18, align 1
  %promoted19 = zext i8 %.49.6 to i64
  %.56.6 = add i64 %arg.at, 7
  %7 = and i64 %promoted19, 127
  %.93.6 = shl nuw nsw i64 %7, 42
  %.95.6 = or i64 %.93.6, %.95.5
  %.102.6 = icmp sgt i8 %.49.6, -1
  br i1 %.102.6, label %B130, label %B174.6

B174.6:
  %exitcond.6.not = icmp eq i64 %.56.6, %arg.end
  br i1 %exitcond.6.not, label %common.ret, label %B36.7

B36.7:
  %sunkaddr20 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr21 = getelementptr i8, ptr %sunkaddr20, i64 7
  %.49.7 = load i8, ptr %sunkaddr21, align 1
  %promoted22 = zext i8 %.49.7 to i64
  %.56.7 = add i64 %arg.at, 8
  %8 = and i64 %promoted22, 127
  %.93.7 = shl nuw nsw i64 %8, 49
  %.95.7 = or i64 %.93.7, %.95.6
  %.102.7 = icmp sgt i8 %.49.7, -1
  br i1 %.102.7, label %B130, label %B174.7

B174.7:
  %exitcond.7.not = icmp eq i64 %.56.7, %arg.end
  br i1 %exitcond.7.not, label %common.ret, label %B36.8

B36.8:
  %sunkaddr23 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr24 = getelementptr i8, ptr %sunkaddr23, i64 8
  %.49.8 = load i8, ptr %sunkaddr24, align 1
  %promoted25 = zext i8 %.49.8 to i64
  %.56.8 = add i64 %arg.at, 9
  %9 = and i64 %promoted25, 127
  %.93.8 = shl nuw nsw i64 %9, 56
  %.95.8 = or i64 %.93.8, %.95.7
  %.102.8 = icmp sgt i8 %.49.8, -1
  br i1 %.102.8, label %B130, label %B174.8

B174.8:
  %exitcond.8.not = icmp eq i64 %.56.8, %arg.end
  br i1 %exitcond.8.not, label %common.ret, label %B80
}

define i64 @check(ptr %a0, i64 %a1, i64 %a2, i64 %a3, i64 %a4, i64 %a5, i64 %a6, i64 %a7, i64 %a8, ptr %a9, ptr %a10) {
  %answer = alloca i64, align 8
  store i64 0, ptr %answer, align 8
  %status = call i32 @compiled_check(ptr %answer, ptr null, ptr %a0, i64 %a1, i64 %a2, i64 %a3, i64 %a4, i64 %a5, i64 %a6, i64 %a7, i64 %a8, ptr %a9, ptr %a10)
  %fault = load i64, ptr %answer, align 8
  ret i64 %fault
}
