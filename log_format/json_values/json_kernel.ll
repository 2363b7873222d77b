; Written by scripts/kernels.py from json_kernel.py with numba 0.68.1.
declare void @llvm.memset.p0.i64(ptr captures(none), i8, i64, i1 immarg)
declare void @llvm.lifetime.start.p0(ptr captures(none))
declare void @llvm.lifetime.end.p0(ptr captures(none))
declare { i64, i1 } @llvm.uadd.with.overflow.i64(i64, i64)

define internal i32 @compiled_filled_row(ptr %retptr, ptr %excinfo, ptr %arg.data, i64 %arg.at, i64 %arg.end, i64 %arg.row, i64 %arg.rows, i64 %arg.fields, i64 %arg.needed, ptr %arg.plan, ptr %arg.names, ptr %arg.ints, ptr %arg.reals, ptr %arg.flags, ptr %arg.texts, i64 %arg.room, ptr %arg.valid, ptr %arg.hard, ptr %arg.used, ptr %arg.powers, ptr %arg.places) {
B0:
  %.341 = alloca [2 x i64], align 8
  %excinfo.4 = alloca ptr, align 8
  store ptr null, ptr %excinfo.4, align 8
  %.454 = alloca i64, align 8
  store i64 0, ptr %.454, align 8
  %excinfo.5 = alloca ptr, align 8
  store ptr null, ptr %excinfo.5, align 8
  %.568 = alloca i64, align 8
  store i64 0, ptr %.568, align 8
  %excinfo.6 = alloca ptr, align 8
  store ptr null, ptr %excinfo.6, align 8
  store i64 0, ptr %arg.places, align 8
  %.19.i = icmp slt i64 %arg.at, %arg.end
  br i1 %.19.i, label %B16.i, label %B0.endif

B16.i:
  %.29.i = getelementptr i8, ptr %arg.data, i64 %arg.at
  %.30.i = load i8, ptr %.29.i, align 1
  %0 = zext i8 %.30.i to i32
  switch i32 %0, label %B0.endif [
    i32 32, label %B112.preheader.i
    i32 10, label %B112.preheader.i
    i32 13, label %B112.preheader.i
    i32 9, label %B112.preheader.i
  ]

B112.preheader.i:
  %.7242.i = add nsw i64 %arg.at, 1
  %.8343.i = icmp slt i64 %.7242.i, %arg.end
  br i1 %.8343.i, label %B134.i.preheader, label %B0.endif

B134.i.preheader:
  br label %B134.i

B134.i:
  %.7244.i = phi i64 [ %.72.i, %B231.i ], [ %.7242.i, %B134.i.preheader ]
  %.89.i = getelementptr i8, ptr %arg.data, i64 %.7244.i
  %.90.i = load i8, ptr %.89.i, align 1
  %1 = zext i8 %.90.i to i32
  switch i32 %1, label %B0.endif.loopexit [
    i32 32, label %B231.i
    i32 10, label %B231.i
    i32 13, label %B231.i
    i32 9, label %B231.i
  ]

B231.i:
  %.72.i = add i64 %.7244.i, 1
  %exitcond.not.i = icmp eq i64 %arg.end, %.72.i
  br i1 %exitcond.not.i, label %B92, label %B134.i

B68:
  %.124 = getelementptr i8, ptr %arg.data, i64 %at.3.0.i
  %.125 = load i8, ptr %.124, align 1
  %.127.not = icmp eq i8 %.125, 123
  br i1 %.127.not, label %B96, label %B92

common.ret:
  %common.ret.op = phi i32 [ 0, %B92 ], [ 0, %B230 ], [ 0, %B296 ], [ 0, %B368 ], [ 0, %B474 ], [ 0, %B524 ], [ 0, %B602 ], [ 0, %B644 ], [ %.345, %B234.if.if ], [ %.458, %B312.if.if ], [ %.572, %B372.if.if ]
  ret i32 %common.ret.op

B92:
  store i8 0, ptr %retptr, align 1
  br label %common.ret

B96:
  %.176 = add nsw i64 %at.3.0.i, 1
  %.19.i23 = icmp slt i64 %.176, %arg.end
  br i1 %.19.i23, label %B16.i25, label %B96.endif

B16.i25:
  %.29.i26 = getelementptr i8, ptr %arg.data, i64 %.176
  %.30.i27 = load i8, ptr %.29.i26, align 1
  %2 = zext i8 %.30.i27 to i32
  switch i32 %2, label %B96.endif [
    i32 32, label %B112.preheader.i28
    i32 10, label %B112.preheader.i28
    i32 13, label %B112.preheader.i28
    i32 9, label %B112.preheader.i28
  ]

B112.preheader.i28:
  %.7242.i29 = add nsw i64 %at.3.0.i, 2
  %.8343.i30 = icmp slt i64 %.7242.i29, %arg.end
  br i1 %.8343.i30, label %B134.i31.preheader, label %B96.endif

B134.i31.preheader:
  br label %B134.i31

B134.i31:
  %.7244.i32 = phi i64 [ %.72.i36, %B231.i35 ], [ %.7242.i29, %B134.i31.preheader ]
  %.89.i33 = getelementptr i8, ptr %arg.data, i64 %.7244.i32
  %.90.i34 = load i8, ptr %.89.i33, align 1
  %3 = zext i8 %.90.i34 to i32
  switch i32 %3, label %B96.endif.loopexit [
    i32 32, label %B231.i35
    i32 10, label %B231.i35
    i32 13, label %B231.i35
    i32 9, label %B231.i35
  ]

B231.i35:
  %.72.i36 = add i64 %.7244.i32, 1
  %exitcond.not.i37 = icmp eq i64 %arg.end, %.72.i36
  br i1 %exitcond.not.i37, label %B234.preheader, label %B134.i31

B148:
  %.214 = getelementptr i8, ptr %arg.data, i64 %at.3.0.i24
  %.215 = load i8, ptr %.214, align 1
  %.217 = icmp eq i8 %.215, 125
  br i1 %.217, label %B172, label %B234.preheader

B234.preheader:
  %at.1.7.0.ph = phi i64 [ %at.3.0.i24, %B148 ], [ %at.3.0.i24, %B96.endif ], [ %arg.end, %B231.i35 ]
  br label %B234

B172:
  %.254 = icmp eq i64 %arg.needed, 0
  br i1 %.254, label %B184, label %B230

B184:
  %.263 = add nsw i64 %at.3.0.i24, 1
  %.19.i39 = icmp slt i64 %.263, %arg.end
  br i1 %.19.i39, label %B16.i41, label %B184.endif

B16.i41:
  %.29.i42 = getelementptr i8, ptr %arg.data, i64 %.263
  %.30.i43 = load i8, ptr %.29.i42, align 1
  %4 = zext i8 %.30.i43 to i32
  switch i32 %4, label %B184.endif [
    i32 32, label %B112.preheader.i44
    i32 10, label %B112.preheader.i44
    i32 13, label %B112.preheader.i44
    i32 9, label %B112.preheader.i44
  ]

B112.preheader.i44:
  %.7242.i45 = add nsw i64 %at.3.0.i24, 2
  %.8343.i46 = icmp slt i64 %.7242.i45, %arg.end
  br i1 %.8343.i46, label %B134.i47.preheader, label %B184.endif

B134.i47.preheader:
  br label %B134.i47

B134.i47:
  %.7244.i48 = phi i64 [ %.72.i52, %B231.i51 ], [ %.7242.i45, %B134.i47.preheader ]
  %.89.i49 = getelementptr i8, ptr %arg.data, i64 %.7244.i48
  %.90.i50 = load i8, ptr %.89.i49, align 1
  %5 = zext i8 %.90.i50 to i32
  switch i32 %5, label %B134.i47.B184.endif.loopexit_crit_edge [
    i32 32, label %B231.i51
    i32 10, label %B231.i51
    i32 13, label %B231.i51
    i32 9, label %B231.i51
  ]

B231.i51:
  %.72.i52 = add i64 %.7244.i48, 1
  %exitcond.not.i53 = icmp eq i64 %arg.end, %.72.i52
  br i1 %exitcond.not.i53, label %B184.endif, label %B134.i47

B230:
  %"$phi230.0.2.0" = phi i8 [ %13, %B184.endif ], [ 0, %B172 ]
  store i8 %"$phi230.0.2.0", ptr %retptr, align 1
  br label %common.ret

B234:
  %seen.2.0 = phi i64 [ %seen.3.1, %B528.endif ], [ 0, %B234.preheader ]
  %expected.2.0 = phi i64 [ %expected.3.1, %B528.endif ], [ 0, %B234.preheader ]
  %at.1.7.0 = phi i64 [ %at.3.0.i72, %B528.endif ], [ %at.1.7.0.ph, %B234.preheader ]
  call void @llvm.memset.p0.i64(ptr align 8 dereferenceable(16) %.341, i8 0, i64 16, i1 false)
  %.345 = call i32 @compiled_member(ptr %.341, ptr %excinfo.4, ptr %arg.data, i64 %at.1.7.0, i64 %arg.end, ptr %arg.plan, ptr %arg.names, i64 %arg.fields, i64 %expected.2.0, ptr %arg.places)
  %.355.fca.0.load = load i64, ptr %.341, align 8
  %sunkaddr134 = getelementptr inbounds i8, ptr %.341, i64 8
  %.355.fca.1.load = load i64, ptr %sunkaddr134, align 8
  %cond = icmp eq i32 %.345, 0
  br i1 %cond, label %B234.endif, label %B234.if.if

B296:
  store i8 0, ptr %retptr, align 1
  br label %common.ret

B300:
  %.432 = icmp slt i64 %.355.fca.0.load, 0
  br i1 %.432, label %B312, label %B352

B312:
  store i64 0, ptr %.454, align 8
  %.458 = call i32 @compiled_skipped(ptr %.454, ptr %excinfo.5, ptr %arg.data, i64 %.355.fca.1.load, i64 %arg.end, ptr %arg.texts, ptr %arg.places)
  %cond94 = icmp eq i32 %.458, 0
  br i1 %cond94, label %B462, label %B312.if.if

B352:
  %6 = shl nuw i64 1, %.355.fca.0.load
  %7 = and i64 %6, %seen.2.0
  %.490.not = icmp eq i64 %7, 0
  br i1 %.490.not, label %B372, label %B368

B368:
  store i8 0, ptr %retptr, align 1
  br label %common.ret

B372:
  %.540 = or i64 %6, %seen.2.0
  %.544 = add nuw nsw i64 %.355.fca.0.load, 1
  store i64 0, ptr %.568, align 8
  %.572 = call i32 @compiled_valued(ptr %.568, ptr %excinfo.6, ptr %arg.data, i64 %.355.fca.1.load, i64 %arg.end, i64 %arg.row, i64 %arg.rows, i64 %.355.fca.0.load, i64 %arg.fields, ptr %arg.plan, ptr %arg.ints, ptr %arg.reals, ptr %arg.flags, ptr %arg.texts, i64 %arg.room, ptr %arg.valid, ptr %arg.hard, ptr %arg.used, ptr %arg.powers, ptr %arg.places)
  %cond95 = icmp eq i32 %.572, 0
  br i1 %cond95, label %B462, label %B372.if.if

B462:
  %seen.3.1 = phi i64 [ %seen.2.0, %B312 ], [ %.540, %B372 ]
  %expected.3.1 = phi i64 [ %expected.2.0, %B312 ], [ %.544, %B372 ]
  %at.1.8.1.in = phi ptr [ %.454, %B312 ], [ %.568, %B372 ]
  %at.1.8.1 = load i64, ptr %at.1.8.1.in, align 8
  %.600 = icmp slt i64 %at.1.8.1, 0
  br i1 %.600, label %B474, label %B478

B474:
  store i8 0, ptr %retptr, align 1
  br label %common.ret

B478:
  %.19.i55 = icmp slt i64 %at.1.8.1, %arg.end
  br i1 %.19.i55, label %B16.i57, label %B478.endif

B16.i57:
  %.29.i58 = getelementptr i8, ptr %arg.data, i64 %at.1.8.1
  %.30.i59 = load i8, ptr %.29.i58, align 1
  %8 = zext i8 %.30.i59 to i32
  switch i32 %8, label %B478.endif [
    i32 32, label %B112.preheader.i60
    i32 10, label %B112.preheader.i60
    i32 13, label %B112.preheader.i60
    i32 9, label %B112.preheader.i60
  ]

B112.preheader.i60:
  %.7242.i61 = add nuw nsw i64 %at.1.8.1, 1
  %.8343.i62 = icmp ult i64 %.7242.i61, %arg.end
  br i1 %.8343.i62, label %B134.i63.preheader, label %B478.endif

B134.i63.preheader:
  br label %B134.i63

B134.i63:
  %.7244.i64 = phi i64 [ %.72.i68, %B231.i67 ], [ %.7242.i61, %B134.i63.preheader ]
  %.89.i65 = getelementptr i8, ptr %arg.data, i64 %.7244.i64
  %.90.i66 = load i8, ptr %.89.i65, align 1
  %9 = zext i8 %.90.i66 to i32
  switch i32 %9, label %B478.endif.loopexit [
    i32 32, label %B231.i67
    i32 10, label %B231.i67
    i32 13, label %B231.i67
    i32 9, label %B231.i67
  ]

B231.i67:
  %.72.i68 = add i64 %.7244.i64, 1
  %exitcond.not.i69 = icmp eq i64 %arg.end, %.72.i68
  br i1 %exitcond.not.i69, label %B524, label %B134.i63

B524:
  store i8 0, ptr %retptr, align 1
  br label %common.ret

B528:
  %.731 = getelementptr i8, ptr %arg.data, i64 %at.3.0.i56
  %.732 = load i8, ptr %.731, align 1
  %10 = zext i8 %.732 to i32
  %.740 = add nsw i64 %at.3.0.i56, 1
  %.19.i71 = icmp slt i64 %.740, %arg.end
  br i1 %.19.i71, label %B16.i73, label %B528.endif

B16.i73:
  %.29.i74 = getelementptr i8, ptr %arg.data, i64 %.740
  %.30.i75 = load i8, ptr %.29.i74, align 1
  %11 = zext i8 %.30.i75 to i32
  switch i32 %11, label %B528.endif [
    i32 32, label %B112.preheader.i76
    i32 10, label %B112.preheader.i76
    i32 13, label %B112.preheader.i76
    i32 9, label %B112.preheader.i76
  ]

B112.preheader.i76:
  %.7242.i77 = add nsw i64 %at.3.0.i56, 2
  %.8343.i78 = icmp slt i64 %.7242.i77, %arg.end
  br i1 %.8343.i78, label %B134.i79.preheader, label %B528.endif

B134.i79.preheader:
  br label %B134.i79

B134.i79:
  %.7244.i80 = phi i64 [ %.72.i84, %B231.i83 ], [ %.7242.i77, %B134.i79.preheader ]
  %.89.i81 = getelementptr i8, ptr %arg.data, i64 %.7244.i80
  %.90.i82 = load i8, ptr %.89.i81, align 1
  %12 = zext i8 %.90.i82 to i32
  switch i32 %12, label %B134.i79.B528.endif.loopexit_crit_edge [
    i32 32, label %B231.i83
    i32 10, label %B231.i83
    i32 13, label %B231.i83
    i32 9, label %B231.i83
  ]

B231.i83:
  %.72.i84 = add i64 %.7244.i80, 1
  %exitcond.not.i85 = icmp eq i64 %arg.end, %.72.i84
  br i1 %exitcond.not.i85, label %B528.endif, label %B134.i79

B602:
  %.813 = and i64 %seen.3.1, %arg.needed
  %.817 = icmp eq i64 %.813, %arg.needed
  %.826 = icmp eq i64 %at.3.0.i72, %arg.end
  %spec.select = and i1 %.817, %.826
  %.841 = zext i1 %spec.select to i8
  store i8 %.841, ptr %retptr, align 1
  br label %common.ret

B644:
  store i8 0, ptr %retptr, align 1
  br label %common.ret

B0.endif.loopexit:
  br label %B0.endif

B0.endif:
  %at.3.0.i = phi i64 [ %arg.at, %B16.i ], [ %arg.at, %B0 ], [ %.7242.i, %B112.preheader.i ], [ %.7244.i, %B0.endif.loopexit ]
  %.120.not = icmp slt i64 %at.3.0.i, %arg.end
  br i1 %.120.not, label %B68, label %B92

B96.endif.loopexit:
  br label %B96.endif

B96.endif:
  %at.3.0.i24 = phi i64 [ %.176, %B16.i25 ], [ %.176, %B96 ], [ %.7242.i29, %B112.preheader.i28 ], [ %.7244.i32, %B96.endif.loopexit ]
  %.210 = icmp slt i64 %at.3.0.i24, %arg.end
  br i1 %.210, label %B148, label %B234.preheader

B134.i47.B184.endif.loopexit_crit_edge:
  br label %B184.endif

B184.endif:
  %at.3.0.i40 = phi i64 [ %.263, %B16.i41 ], [ %.263, %B184 ], [ %.7242.i45, %B112.preheader.i44 ], [ %.7244.i48, %B134.i47.B184.endif.loopexit_crit_edge ], [ %arg.end, %B231.i51 ]
  %.295 = icmp eq i64 %at.3.0.i40, %arg.end
  %13 = zext i1 %.295 to i8
  br label %B230

B234.endif:
  %.382 = icmp slt i64 %.355.fca.1.load, 0
  br i1 %.382, label %B296, label %B300

B234.if.if:
  %.353 = icmp sgt i32 %.345, 0
  %.346 = load ptr, ptr %excinfo.4, align 8
  %.354 = select i1 %.353, ptr %.346, ptr undef
  store ptr %.354, ptr %excinfo, align 8
  br label %common.ret

B312.if.if:
  %.466 = icmp sgt i32 %.458, 0
  %.459 = load ptr, ptr %excinfo.5, align 8
  %.467 = select i1 %.466, ptr %.459, ptr undef
  store ptr %.467, ptr %excinfo, align 8
  br label %common.ret

B372.if.if:
  %.580 = icmp sgt i32 %.572, 0
  %.573 = load ptr, ptr %excinfo.6, align 8
  %.581 = select i1 %.580, ptr %.573, ptr undef
  store ptr %.581, ptr %excinfo, align 8
  br label %common.ret

B478.endif.loopexit:
  br label %B478.endif

B478.endif:
  %at.3.0.i56 = phi i64 [ %at.1.8.1, %B16.i57 ], [ %at.1.8.1, %B478 ], [ %.7242.i61, %B112.preheader.i60 ], [ %.7244.i64, %B478.endif.loopexit ]
  %.682.not = icmp slt i64 %at.3.0.i56, %arg.end
  br i1 %.682.not, label %B528, label %B524

B134.i79.B528.endif.loopexit_crit_edge:
  br label %B528.endif

B528.endif:
  %at.3.0.i72 = phi i64 [ %.740, %B16.i73 ], [ %.740, %B528 ], [ %.7242.i77, %B112.preheader.i76 ], [ %.7244.i80, %B134.i79.B528.endif.loopexit_crit_edge ], [ %arg.end, %B231.i83 ]
  switch i32 %10, label %B644 [
    i32 125, label %B602
    i32 44, label %B234
  ]
}

define internal i32 @compiled_day(ptr %retptr, ptr %excinfo, ptr %arg.data, i64 %arg.at) {
B0:
  %0 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %.137.i = load i8, ptr %0, align 1
  %.138.i = zext i8 %.137.i to i64
  %1 = add i8 %.137.i, -58
  %or.cond.i = icmp ult i8 %1, -10
  br i1 %or.cond.i, label %B0.endif, label %B112.i

B112.i:
  %sunkaddr = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr2 = getelementptr i8, ptr %sunkaddr, i64 1
  %.137.1.i = load i8, ptr %sunkaddr2, align 1
  %.138.1.i = zext i8 %.137.1.i to i64
  %2 = add i8 %.137.1.i, -58
  %or.cond.1.i = icmp ult i8 %2, -10
  br i1 %or.cond.1.i, label %B0.endif, label %B112.1.i

B112.1.i:
  %sunkaddr4 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr6 = getelementptr i8, ptr %sunkaddr4, i64 2
  %.137.2.i = load i8, ptr %sunkaddr6, align 1
  %.138.2.i = zext i8 %.137.2.i to i64
  %3 = add i8 %.137.2.i, -58
  %or.cond.2.i = icmp ult i8 %3, -10
  br i1 %or.cond.2.i, label %B0.endif, label %B112.2.i

B112.2.i:
  %sunkaddr8 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr10 = getelementptr i8, ptr %sunkaddr8, i64 3
  %.137.3.i = load i8, ptr %sunkaddr10, align 1
  %.138.3.i = zext i8 %.137.3.i to i64
  %4 = add i8 %.137.3.i, -58
  %or.cond.3.i = icmp ult i8 %4, -10
  br i1 %or.cond.3.i, label %B0.endif, label %B112.3.i

B112.3.i:
  %5 = mul nuw nsw i64 %.138.i, 10
  %.164.1.i = add nsw i64 %5, -528
  %.167.1.i = add nsw i64 %.164.1.i, %.138.1.i
  %.162.2.i = mul nuw nsw i64 %.167.1.i, 10
  %.164.2.i = add nsw i64 %.162.2.i, -48
  %.167.2.i = add nsw i64 %.164.2.i, %.138.2.i
  %.162.3.i = mul nuw nsw i64 %.167.2.i, 10
  %.164.3.i = add nsw i64 %.162.3.i, -48
  %.167.3.i = add nsw i64 %.164.3.i, %.138.3.i
  br label %B0.endif

B68:
  %sunkaddr12 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr14 = getelementptr i8, ptr %sunkaddr12, i64 7
  %.54 = load i8, ptr %sunkaddr14, align 1
  %.56 = icmp ne i8 %.54, 45
  %.59 = icmp slt i64 %storemerge.i, 2
  %or.cond = select i1 %.56, i1 true, i1 %.59
  %.62 = icmp ugt i64 %storemerge.i, 9998
  %or.cond15 = select i1 %or.cond, i1 true, i1 %.62
  br i1 %or.cond15, label %common.ret, label %B136

common.ret:
  %storemerge = phi i64 [ -1000000, %B68 ], [ -1000000, %B0.endif ], [ %.447.i, %B186.i ], [ -1000000, %B136.endif.endif ], [ -1000000, %B106.i ], [ -1000000, %B136.endif ], [ -1000000, %B112.i16 ]
  store i64 %storemerge, ptr %retptr, align 8
  ret i32 0

B136:
  %sunkaddr16 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr18 = getelementptr i8, ptr %sunkaddr16, i64 5
  %.137.i1 = load i8, ptr %sunkaddr18, align 1
  %.138.i2 = zext i8 %.137.i1 to i64
  %6 = add i8 %.137.i1, -58
  %or.cond.i3 = icmp ult i8 %6, -10
  br i1 %or.cond.i3, label %B136.endif, label %B112.i4

B112.i4:
  %sunkaddr19 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr20 = getelementptr i8, ptr %sunkaddr19, i64 6
  %.137.1.i6 = load i8, ptr %sunkaddr20, align 1
  %.138.1.i9 = zext i8 %.137.1.i6 to i64
  %7 = add i8 %.137.1.i6, -58
  %or.cond.1.i7 = icmp ult i8 %7, -10
  br i1 %or.cond.1.i7, label %B136.endif, label %B112.1.i8

B112.1.i8:
  %8 = mul nuw nsw i64 %.138.i2, 10
  %.164.1.i10 = add nsw i64 %8, -528
  %.167.1.i11 = add nsw i64 %.164.1.i10, %.138.1.i9
  br label %B136.endif

B0.endif:
  %storemerge.i = phi i64 [ -1000000, %B0 ], [ %.167.3.i, %B112.3.i ], [ -1000000, %B112.i ], [ -1000000, %B112.2.i ], [ -1000000, %B112.1.i ]
  %sunkaddr21 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr22 = getelementptr i8, ptr %sunkaddr21, i64 4
  %.46 = load i8, ptr %sunkaddr22, align 1
  %.48.not = icmp eq i8 %.46, 45
  br i1 %.48.not, label %B68, label %common.ret

B136.endif:
  %storemerge.i12 = phi i64 [ -1000000, %B136 ], [ %.167.1.i11, %B112.1.i8 ], [ -1000000, %B112.i4 ]
  %sunkaddr23 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr24 = getelementptr i8, ptr %sunkaddr23, i64 8
  %.137.i13 = load i8, ptr %sunkaddr24, align 1
  %.138.i14 = zext i8 %.137.i13 to i64
  %9 = add i8 %.137.i13, -58
  %or.cond.i15 = icmp ult i8 %9, -10
  br i1 %or.cond.i15, label %common.ret, label %B112.i16

B112.i16:
  %sunkaddr25 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr26 = getelementptr i8, ptr %sunkaddr25, i64 9
  %.137.1.i18 = load i8, ptr %sunkaddr26, align 1
  %.138.1.i21 = zext i8 %.137.1.i18 to i64
  %10 = add i8 %.137.1.i18, -58
  %or.cond.1.i19 = icmp ult i8 %10, -10
  br i1 %or.cond.1.i19, label %common.ret, label %B136.endif.endif

B136.endif.endif:
  %11 = mul nuw nsw i64 %.138.i14, 10
  %.164.1.i22 = add nsw i64 %11, -528
  %.167.1.i23 = add nsw i64 %.164.1.i22, %.138.1.i21
  %12 = add nsw i64 %storemerge.i12, -13
  %or.cond.i26 = icmp ult i64 %12, -12
  %.20.i = icmp eq i64 %.167.1.i23, 0
  %or.cond62.i = select i1 %or.cond.i26, i1 true, i1 %.20.i
  br i1 %or.cond62.i, label %common.ret, label %B54.else.if.i

B106.i:
  %"$phi106.0.3.0.i" = phi i64 [ 28, %B54.else.if.i ], [ %16, %B90.else.if.i ], [ 29, %B72.else.if.i ]
  %.173.i = lshr i64 %storemerge.i12, 3
  %.175.i = add nuw nsw i64 %.173.i, %storemerge.i12
  %.177.i = or i64 %.175.i, 30
  %.182.i = icmp eq i64 %storemerge.i12, 2
  %last.2.0.i = select i1 %.182.i, i64 %"$phi106.0.3.0.i", i64 %.177.i
  %.207.i = icmp ugt i64 %.167.1.i23, %last.2.0.i
  br i1 %.207.i, label %common.ret, label %B186.i

B186.i:
  %.220.i = icmp ult i64 %storemerge.i12, 3
  %.223.i = sext i1 %.220.i to i64
  %"$phi210.0.2.048.i" = add nsw i64 %storemerge.i, %.223.i
  %"$phi244.1.2.0.v.i" = select i1 %.220.i, i64 9, i64 65533
  %"$phi244.1.2.0.i" = add nuw nsw i64 %"$phi244.1.2.0.v.i", %storemerge.i12
  %13 = trunc i64 %"$phi244.1.2.0.i" to i16
  %14 = mul i16 %13, 153
  %.28958.lhs.trunc.i = add i16 %14, 2
  %.2895859.i = udiv i16 %.28958.lhs.trunc.i, 5
  %.28958.zext.i = zext i16 %.2895859.i to i64
  %.317.i = mul nuw nsw i64 %"$phi210.0.2.048.i", 365
  %.326.1.i = lshr i64 %"$phi210.0.2.048.i", 2
  %.379.neg.i35.lhs.trunc = trunc nuw nsw i64 %"$phi210.0.2.048.i" to i16
  %.379.neg.i3536 = udiv i16 %.379.neg.i35.lhs.trunc, 100
  %.379.neg.i35.zext = zext i16 %.379.neg.i3536 to i64
  %.421.i3940 = udiv i16 %.379.neg.i35.lhs.trunc, 400
  %.421.i39.zext = zext i16 %.421.i3940 to i64
  %.315.i = add nuw nsw i64 %.326.1.i, -719469
  %.368.1.neg.i = add nsw i64 %.315.i, %.317.i
  %.359.i = add nsw i64 %.368.1.neg.i, %.421.i39.zext
  %.401.i = sub nsw i64 %.359.i, %.379.neg.i35.zext
  %.410.1.i = add nsw i64 %.401.i, %.28958.zext.i
  %.447.i = add nsw i64 %.410.1.i, %.167.1.i23
  br label %common.ret

B54.else.if.i:
  %15 = and i64 %storemerge.i, 3
  %.71.i = icmp eq i64 %15, 0
  br i1 %.71.i, label %B72.else.if.i, label %B106.i

B72.else.if.i:
  %.96.i31.lhs.trunc = trunc nuw nsw i64 %storemerge.i to i16
  %.96.i3132 = urem i16 %.96.i31.lhs.trunc, 100
  %.117.not.i = icmp eq i16 %.96.i3132, 0
  br i1 %.117.not.i, label %B90.else.if.i, label %B106.i

B90.else.if.i:
  %.141.i3334 = urem i16 %.96.i31.lhs.trunc, 400
  %.162.i = icmp eq i16 %.141.i3334, 0
  %16 = select i1 %.162.i, i64 29, i64 28
  br label %B106.i
}

define internal i32 @compiled_date(ptr %retptr, ptr %excinfo, ptr %arg.data, i64 %arg.at, i64 %arg.end) {
B0:
  %.40 = alloca i64, align 8
  %excinfo.1 = alloca ptr, align 8
  %.12 = sub nsw i64 %arg.end, %arg.at
  %.13 = icmp slt i64 %.12, 11
  br i1 %.13, label %B52, label %B22

B22:
  %0 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %.18 = getelementptr i8, ptr %0, i64 10
  %.19 = load i8, ptr %.18, align 1
  %.21.not = icmp eq i8 %.19, 34
  br i1 %.21.not, label %B56, label %B52

common.ret:
  %common.ret.op = phi i32 [ 0, %B52 ], [ 0, %B56.endif ], [ %.44, %B56.if.if ]
  ret i32 %common.ret.op

B52:
  store i64 0, ptr %retptr, align 8
  %retptr.repack14 = getelementptr i8, ptr %retptr, i64 8
  store i64 -1, ptr %retptr.repack14, align 8
  br label %common.ret

B56:
  %.44 = call i32 @compiled_day(ptr %.40, ptr %excinfo.1, ptr %arg.data, i64 %arg.at)
  %cond = icmp eq i32 %.44, 0
  br i1 %cond, label %B56.endif, label %B56.if.if

B56.endif:
  %.54 = load i64, ptr %.40, align 8
  %.68 = icmp eq i64 %.54, -1000000
  %.80 = add nsw i64 %arg.at, 11
  %"$phi124.1.2.0" = select i1 %.68, i64 -1, i64 %.80
  store i64 %.54, ptr %retptr, align 8
  %retptr.repack12 = getelementptr i8, ptr %retptr, i64 8
  store i64 %"$phi124.1.2.0", ptr %retptr.repack12, align 8
  br label %common.ret

B56.if.if:
  store ptr null, ptr %excinfo, align 8
  br label %common.ret
}

define internal i32 @compiled_text(ptr %retptr, ptr %excinfo, ptr %arg.data, i64 %arg.at, i64 %arg.end, ptr %arg.out, i64 %arg.to, i64 %arg.keep) {
B0:
  %.112 = alloca i64, align 8
  %excinfo.1 = alloca ptr, align 8
  %.28 = icmp slt i64 %arg.at, %arg.end
  br i1 %.28, label %B16.preheader, label %B436

B16.preheader:
  br label %B16

B16:
  %at.4.0 = phi i64 [ %at.5.1, %B424 ], [ %arg.at, %B16.preheader ]
  %.37 = getelementptr i8, ptr %arg.data, i64 %at.4.0
  %.38 = load i8, ptr %.37, align 1
  %0 = zext i8 %.38 to i32
  %.45 = icmp eq i8 %.38, 34
  br i1 %.45, label %B50, label %B64

common.ret:
  %common.ret.op = phi i32 [ 0, %B50 ], [ 0, %B76 ], [ 0, %B148 ], [ 0, %B334 ], [ 0, %B436 ], [ %.116, %B96.if.if ]
  ret i32 %common.ret.op

B50:
  %.58 = add nsw i64 %at.4.0, 1
  store i64 %.58, ptr %retptr, align 8
  %retptr.repack159 = getelementptr i8, ptr %retptr, i64 8
  store i64 0, ptr %retptr.repack159, align 8
  br label %common.ret

B64:
  %1 = trunc i32 %0 to i8
  %.75 = icmp ult i8 %1, 32
  br i1 %.75, label %B76, label %B84

B76:
  store i64 -1, ptr %retptr, align 8
  %retptr.repack158 = getelementptr i8, ptr %retptr, i64 8
  store i64 0, ptr %retptr.repack158, align 8
  br label %common.ret

B84:
  %2 = trunc i32 %0 to i8
  %.103 = icmp eq i8 %2, 92
  br i1 %.103, label %B96, label %B240

B96:
  %.109 = add nsw i64 %at.4.0, 1
  %.116 = call i32 @compiled_escape(ptr %.112, ptr %excinfo.1, ptr %arg.data, i64 %.109, i64 %arg.end)
  %cond = icmp eq i32 %.116, 0
  br i1 %cond, label %B96.endif, label %B96.if.if

B148:
  store i64 -1, ptr %retptr, align 8
  %retptr.repack157 = getelementptr i8, ptr %retptr, i64 8
  store i64 0, ptr %retptr.repack157, align 8
  br label %common.ret

B194:
  %sunkaddr = getelementptr i8, ptr %arg.data, i64 %at.4.0
  %sunkaddr43 = getelementptr i8, ptr %sunkaddr, i64 1
  %.219 = load i8, ptr %sunkaddr43, align 1
  %.221 = icmp eq i8 %.219, 117
  %spec.select = select i1 %.221, i64 6, i64 2
  %.244 = add nsw i64 %spec.select, %at.4.0
  br label %B424

B240:
  %3 = trunc i32 %0 to i8
  %.254 = icmp sgt i8 %3, -1
  br i1 %.254, label %B276, label %B288

B276:
  %.288 = add nsw i64 %at.4.0, 1
  br label %B424

B288:
  %4 = trunc i32 %0 to i8
  %5 = add nsw i8 %4, 11
  %or.cond.i = icmp ult i8 %5, -51
  br i1 %or.cond.i, label %B334, label %B54.i

B54.i:
  %6 = trunc i32 %0 to i8
  %7 = trunc i32 %0 to i8
  %.39.i = icmp ugt i8 %7, -33
  %.46.i = icmp ult i8 %6, -16
  %spec.select.i = select i1 %.46.i, i64 3, i64 4
  %"$phi88.0.3.0.i" = select i1 %.39.i, i64 %spec.select.i, i64 2
  %.62.i = sub nsw i64 %arg.end, %at.4.0
  %.66.i = icmp sgt i64 %"$phi88.0.3.0.i", %.62.i
  br i1 %.66.i, label %B334, label %B112.i

B112.i:
  switch i32 %0, label %B180.i [
    i32 224, label %B218.peel.i
    i32 240, label %B182.endif.fold.split.i
    i32 237, label %B182.endif.fold.split104.i
    i32 244, label %B182.endif.fold.split105.i
  ]

B180.i:
  br label %B218.peel.i

B218.i:
  %8 = trunc i32 %0 to i8
  %9 = icmp ult i8 %8, -16
  %sunkaddr44 = getelementptr i8, ptr %arg.data, i64 %at.4.0
  %sunkaddr45 = getelementptr i8, ptr %sunkaddr44, i64 2
  %.256.i = load i8, ptr %sunkaddr45, align 1
  %or.cond106.i = icmp sgt i8 %.256.i, -65
  %brmerge1.i = or i1 %9, %or.cond106.i
  %.mux2.i = select i1 %or.cond106.i, i64 0, i64 %spec.select.i
  br i1 %brmerge1.i, label %B288.endif, label %B218.1.i

B218.1.i:
  %sunkaddr46 = getelementptr i8, ptr %arg.data, i64 %at.4.0
  %sunkaddr47 = getelementptr i8, ptr %sunkaddr46, i64 3
  %.256.1.i = load i8, ptr %sunkaddr47, align 1
  %or.cond106.1.i = icmp sgt i8 %.256.1.i, -65
  br i1 %or.cond106.1.i, label %B334, label %B342.endif

B182.endif.fold.split.i:
  br label %B218.peel.i

B182.endif.fold.split104.i:
  br label %B218.peel.i

B182.endif.fold.split105.i:
  br label %B218.peel.i

B218.peel.i:
  %"$phi146.0.3.095.i" = phi i64 [ 128, %B182.endif.fold.split104.i ], [ 144, %B182.endif.fold.split.i ], [ 128, %B180.i ], [ 160, %B112.i ], [ 128, %B182.endif.fold.split105.i ]
  %"$phi182.0.3.0.i" = phi i64 [ 159, %B182.endif.fold.split104.i ], [ 191, %B182.endif.fold.split.i ], [ 191, %B180.i ], [ 191, %B112.i ], [ 143, %B182.endif.fold.split105.i ]
  %10 = trunc i32 %0 to i8
  %11 = icmp ult i8 %10, -32
  %sunkaddr48 = getelementptr i8, ptr %arg.data, i64 %at.4.0
  %sunkaddr49 = getelementptr i8, ptr %sunkaddr48, i64 1
  %.256.peel.i = load i8, ptr %sunkaddr49, align 1
  %.257.peel.i = zext i8 %.256.peel.i to i64
  %.264.peel.i = icmp ugt i64 %"$phi146.0.3.095.i", %.257.peel.i
  %.270.peel.i = icmp ult i64 %"$phi182.0.3.0.i", %.257.peel.i
  %or.cond106.peel.i = select i1 %.264.peel.i, i1 true, i1 %.270.peel.i
  %brmerge.i = or i1 %11, %or.cond106.peel.i
  %.mux.i = select i1 %or.cond106.peel.i, i64 0, i64 %"$phi88.0.3.0.i"
  br i1 %brmerge.i, label %B288.endif, label %B218.i

B334:
  store i64 -1, ptr %retptr, align 8
  %retptr.repack155 = getelementptr i8, ptr %retptr, i64 8
  store i64 0, ptr %retptr.repack155, align 8
  br label %common.ret

B424:
  %at.5.1 = phi i64 [ %.244, %B194 ], [ %.288, %B276 ], [ %12, %B342.endif ]
  %.550 = icmp slt i64 %at.5.1, %arg.end
  br i1 %.550, label %B16, label %B436

B436:
  store i64 -1, ptr %retptr, align 8
  %retptr.repack156 = getelementptr i8, ptr %retptr, i64 8
  store i64 0, ptr %retptr.repack156, align 8
  br label %common.ret

B96.endif:
  %.126 = load i64, ptr %.112, align 8
  %.142 = icmp slt i64 %.126, 0
  br i1 %.142, label %B148, label %B194

B96.if.if:
  store ptr null, ptr %excinfo, align 8
  br label %common.ret

B288.endif:
  %"$phi88.0.3.0.sink.i" = phi i64 [ %.mux.i, %B218.peel.i ], [ %.mux2.i, %B218.i ]
  %.328 = icmp eq i64 %"$phi88.0.3.0.sink.i", 0
  br i1 %.328, label %B334, label %B342.endif

B342.endif:
  %"$phi88.0.3.0.sink.i14" = phi i64 [ %"$phi88.0.3.0.sink.i", %B288.endif ], [ 4, %B218.1.i ]
  %12 = add i64 %"$phi88.0.3.0.sink.i14", %at.4.0
  br label %B424
}

define internal i32 @compiled_text1(ptr %retptr, ptr %excinfo, ptr %arg.data, i64 %arg.at, i64 %arg.end, ptr %arg.out, i64 %arg.to, i64 %arg.keep) {
B0:
  %.112 = alloca i64, align 8
  %excinfo.1 = alloca ptr, align 8
  %.28 = icmp slt i64 %arg.at, %arg.end
  br i1 %.28, label %B16.preheader, label %B436

B16.preheader:
  br label %B16

B16:
  %at.4.0 = phi i64 [ %at.5.1, %B424 ], [ %arg.at, %B16.preheader ]
  %to.4.0 = phi i64 [ %to.5.1, %B424 ], [ %arg.to, %B16.preheader ]
  %.37 = getelementptr i8, ptr %arg.data, i64 %at.4.0
  %.38 = load i8, ptr %.37, align 1
  %0 = zext i8 %.38 to i32
  %.45 = icmp eq i8 %.38, 34
  br i1 %.45, label %B50, label %B64

common.ret:
  %common.ret.op = phi i32 [ 0, %B50 ], [ 0, %B76 ], [ 0, %B148 ], [ 0, %B334 ], [ 0, %B436 ], [ %.116, %B96.if.if ]
  ret i32 %common.ret.op

B50:
  %.58 = add nsw i64 %at.4.0, 1
  store i64 %.58, ptr %retptr, align 8
  %retptr.repack163 = getelementptr i8, ptr %retptr, i64 8
  store i64 %to.4.0, ptr %retptr.repack163, align 8
  br label %common.ret

B64:
  %.75 = icmp ult i8 %.38, 32
  br i1 %.75, label %B76, label %B84

B76:
  store i64 -1, ptr %retptr, align 8
  %retptr.repack161 = getelementptr i8, ptr %retptr, i64 8
  store i64 %to.4.0, ptr %retptr.repack161, align 8
  br label %common.ret

B84:
  %.103 = icmp eq i8 %.38, 92
  br i1 %.103, label %B96, label %B240

B96:
  %.109 = add nsw i64 %at.4.0, 1
  %.116 = call i32 @compiled_escape(ptr %.112, ptr %excinfo.1, ptr %arg.data, i64 %.109, i64 %arg.end)
  %.126 = load i64, ptr %.112, align 8
  %cond = icmp eq i32 %.116, 0
  br i1 %cond, label %B96.endif, label %B96.if.if

B148:
  store i64 -1, ptr %retptr, align 8
  %retptr.repack159 = getelementptr i8, ptr %retptr, i64 8
  store i64 %to.4.0, ptr %retptr.repack159, align 8
  br label %common.ret

B160:
  %.14.i = icmp ult i64 %.126, 128
  br i1 %.14.i, label %B16.i, label %B36.i

B16.i:
  %.19.i = trunc nuw nsw i64 %.126 to i8
  %.20.i = getelementptr i8, ptr %arg.out, i64 %to.4.0
  store i8 %.19.i, ptr %.20.i, align 1
  br label %B194

B36.i:
  %.33.i = icmp ult i64 %.126, 2048
  br i1 %.33.i, label %B48.i, label %B110.i

B48.i:
  %.36.i = lshr i64 %.126, 6
  %1 = trunc nuw nsw i64 %.36.i to i8
  %.45.i = or i8 %1, -64
  %.46.i = getelementptr i8, ptr %arg.out, i64 %to.4.0
  store i8 %.45.i, ptr %.46.i, align 1
  %2 = trunc i64 %.126 to i8
  %3 = and i8 %2, 63
  %.51.i = or i8 %3, -128
  %.52.i = getelementptr i8, ptr %.46.i, i64 1
  store i8 %.51.i, ptr %.52.i, align 1
  br label %B194

B110.i:
  %.63.i = lshr i64 %.126, 12
  %.66.i = lshr i64 %.126, 6
  %4 = trunc i64 %.63.i to i8
  %.76.i = or i8 %4, -32
  %.77.i = getelementptr i8, ptr %arg.out, i64 %to.4.0
  store i8 %.76.i, ptr %.77.i, align 1
  %5 = trunc i64 %.66.i to i8
  %6 = and i8 %5, 63
  %.82.i = or i8 %6, -128
  %.83.i = getelementptr i8, ptr %.77.i, i64 1
  store i8 %.82.i, ptr %.83.i, align 1
  %7 = trunc i64 %.126 to i8
  %8 = and i8 %7, 63
  %.88.i = or i8 %8, -128
  %.89.i = getelementptr i8, ptr %.77.i, i64 2
  store i8 %.88.i, ptr %.89.i, align 1
  br label %B194

B194:
  %.sink.i = phi i64 [ 3, %B110.i ], [ 2, %B48.i ], [ 1, %B16.i ]
  %.94.i = add nsw i64 %.sink.i, %to.4.0
  %sunkaddr = getelementptr i8, ptr %arg.data, i64 %at.4.0
  %sunkaddr80 = getelementptr i8, ptr %sunkaddr, i64 1
  %.219 = load i8, ptr %sunkaddr80, align 1
  %.221 = icmp eq i8 %.219, 117
  %spec.select = select i1 %.221, i64 6, i64 2
  %.244 = add nsw i64 %spec.select, %at.4.0
  br label %B424

B240:
  %.254 = icmp sgt i8 %.38, -1
  br i1 %.254, label %B276, label %B288

B276:
  %.267 = getelementptr i8, ptr %arg.out, i64 %to.4.0
  store i8 %.38, ptr %.267, align 1
  %.272 = add nsw i64 %to.4.0, 1
  %.288 = add nsw i64 %at.4.0, 1
  br label %B424

B288:
  %9 = add nsw i8 %.38, 11
  %or.cond.i = icmp ult i8 %9, -51
  br i1 %or.cond.i, label %B334, label %B54.i

B54.i:
  %.39.i = icmp ugt i8 %.38, -33
  %.46.i18 = icmp ult i8 %.38, -16
  %spec.select.i = select i1 %.46.i18, i64 3, i64 4
  %"$phi88.0.3.0.i" = select i1 %.39.i, i64 %spec.select.i, i64 2
  %.62.i = sub nsw i64 %arg.end, %at.4.0
  %.66.i19 = icmp sgt i64 %"$phi88.0.3.0.i", %.62.i
  br i1 %.66.i19, label %B334, label %B112.i

B112.i:
  switch i32 %0, label %B180.i [
    i32 224, label %B218.peel.i
    i32 240, label %B182.endif.fold.split.i
    i32 237, label %B182.endif.fold.split104.i
    i32 244, label %B182.endif.fold.split105.i
  ]

B180.i:
  br label %B218.peel.i

B218.i:
  %10 = icmp ult i8 %.38, -16
  %sunkaddr82 = getelementptr i8, ptr %arg.data, i64 %at.4.0
  %sunkaddr84 = getelementptr i8, ptr %sunkaddr82, i64 2
  %.256.i = load i8, ptr %sunkaddr84, align 1
  %or.cond106.i = icmp sgt i8 %.256.i, -65
  %brmerge1.i = or i1 %10, %or.cond106.i
  %.mux2.i = select i1 %or.cond106.i, i64 0, i64 %spec.select.i
  br i1 %brmerge1.i, label %B288.endif, label %B218.1.i

B218.1.i:
  %sunkaddr86 = getelementptr i8, ptr %arg.data, i64 %at.4.0
  %sunkaddr87 = getelementptr i8, ptr %sunkaddr86, i64 3
  %.256.1.i = load i8, ptr %sunkaddr87, align 1
  %or.cond106.1.i = icmp sgt i8 %.256.1.i, -65
  br i1 %or.cond106.1.i, label %B334, label %B342.endif.new

B182.endif.fold.split.i:
  br label %B218.peel.i

B182.endif.fold.split104.i:
  br label %B218.peel.i

B182.endif.fold.split105.i:
  br label %B218.peel.i

B218.peel.i:
  %"$phi146.0.3.095.i" = phi i64 [ 128, %B182.endif.fold.split104.i ], [ 144, %B182.endif.fold.split.i ], [ 128, %B180.i ], [ 160, %B112.i ], [ 128, %B182.endif.fold.split105.i ]
  %"$phi182.0.3.0.i" = phi i64 [ 159, %B182.endif.fold.split104.i ], [ 191, %B182.endif.fold.split.i ], [ 191, %B180.i ], [ 191, %B112.i ], [ 143, %B182.endif.fold.split105.i ]
  %11 = icmp ult i8 %.38, -32
  %sunkaddr88 = getelementptr i8, ptr %arg.data, i64 %at.4.0
  %sunkaddr90 = getelementptr i8, ptr %sunkaddr88, i64 1
  %.256.peel.i = load i8, ptr %sunkaddr90, align 1
  %.257.peel.i = zext i8 %.256.peel.i to i64
  %.264.peel.i = icmp ugt i64 %"$phi146.0.3.095.i", %.257.peel.i
  %.270.peel.i = icmp ult i64 %"$phi182.0.3.0.i", %.257.peel.i
  %or.cond106.peel.i = select i1 %.264.peel.i, i1 true, i1 %.270.peel.i
  %brmerge.i = or i1 %11, %or.cond106.peel.i
  %.mux.i = select i1 %or.cond106.peel.i, i64 0, i64 %"$phi88.0.3.0.i"
  br i1 %brmerge.i, label %B288.endif, label %B218.i

B334:
  store i64 -1, ptr %retptr, align 8
  %retptr.repack155 = getelementptr i8, ptr %retptr, i64 8
  store i64 %to.4.0, ptr %retptr.repack155, align 8
  br label %common.ret

B412.epil:
  %lsr.iv111 = phi i64 [ %lsr.iv.next112, %B412.epil ], [ %lsr.iv111.ph, %B412.epil.preheader ]
  %to.7.2188.epil = phi i64 [ %.513.epil, %B412.epil ], [ %to.7.2188.epil.ph, %B412.epil.preheader ]
  %at.6.2187.epil = phi i64 [ %.525.epil, %B412.epil ], [ %at.6.2187.epil.ph, %B412.epil.preheader ]
  %.506.epil = getelementptr i8, ptr %arg.data, i64 %at.6.2187.epil
  %.507.epil = load i8, ptr %.506.epil, align 1
  %.510.epil = getelementptr i8, ptr %arg.out, i64 %to.7.2188.epil
  store i8 %.507.epil, ptr %.510.epil, align 1
  %.513.epil = add i64 %to.7.2188.epil, 1
  %.525.epil = add i64 %at.6.2187.epil, 1
  %lsr.iv.next112 = add nsw i64 %lsr.iv111, -1
  %epil.iter.cmp.not = icmp eq i64 %lsr.iv.next112, 0
  br i1 %epil.iter.cmp.not, label %B424, label %B412.epil

B424:
  %to.5.1 = phi i64 [ %.94.i, %B194 ], [ %.272, %B276 ], [ %.513.3, %B342.endif.new ], [ %.513.epil, %B412.epil ]
  %at.5.1 = phi i64 [ %.244, %B194 ], [ %.288, %B276 ], [ %.525.3, %B342.endif.new ], [ %.525.epil, %B412.epil ]
  %.550 = icmp slt i64 %at.5.1, %arg.end
  br i1 %.550, label %B16, label %B436

B436:
  %to.10.1 = phi i64 [ %arg.to, %B0 ], [ %to.5.1, %B424 ]
  store i64 -1, ptr %retptr, align 8
  %retptr.repack157 = getelementptr i8, ptr %retptr, i64 8
  store i64 %to.10.1, ptr %retptr.repack157, align 8
  br label %common.ret

B96.endif:
  %.142 = icmp slt i64 %.126, 0
  br i1 %.142, label %B148, label %B160

B96.if.if:
  store ptr null, ptr %excinfo, align 8
  br label %common.ret

B288.endif:
  %"$phi88.0.3.0.sink.i" = phi i64 [ %.mux.i, %B218.peel.i ], [ %.mux2.i, %B218.i ]
  %.328 = icmp eq i64 %"$phi88.0.3.0.sink.i", 0
  br i1 %.328, label %B334, label %B342.endif

B342.endif:
  %xtraiter = and i64 %"$phi88.0.3.0.sink.i", 3
  %12 = icmp ult i64 %"$phi88.0.3.0.sink.i", 4
  br i1 %12, label %B412.epil.preheader, label %B342.endif.new

B412.epil.preheader:
  %lsr.iv111.ph = phi i64 [ %xtraiter15, %B342.endif.new ], [ %xtraiter, %B342.endif ]
  %to.7.2188.epil.ph = phi i64 [ %.513.3, %B342.endif.new ], [ %to.4.0, %B342.endif ]
  %at.6.2187.epil.ph = phi i64 [ %.525.3, %B342.endif.new ], [ %at.4.0, %B342.endif ]
  br label %B412.epil

B342.endif.new:
  %xtraiter15 = phi i64 [ %xtraiter, %B342.endif ], [ 0, %B218.1.i ]
  %sunkaddr121 = getelementptr i8, ptr %arg.out, i64 %to.4.0
  store i8 %.38, ptr %sunkaddr121, align 1
  %sunkaddr92 = getelementptr i8, ptr %arg.data, i64 %at.4.0
  %sunkaddr93 = getelementptr i8, ptr %sunkaddr92, i64 1
  %.507.1 = load i8, ptr %sunkaddr93, align 1
  %sunkaddr125 = getelementptr i8, ptr %sunkaddr121, i64 1
  store i8 %.507.1, ptr %sunkaddr125, align 1
  %sunkaddr94 = getelementptr i8, ptr %arg.data, i64 %at.4.0
  %sunkaddr95 = getelementptr i8, ptr %sunkaddr94, i64 2
  %.507.2 = load i8, ptr %sunkaddr95, align 1
  %sunkaddr129 = getelementptr i8, ptr %sunkaddr121, i64 2
  store i8 %.507.2, ptr %sunkaddr129, align 1
  %sunkaddr96 = getelementptr i8, ptr %arg.data, i64 %at.4.0
  %sunkaddr97 = getelementptr i8, ptr %sunkaddr96, i64 3
  %.507.3 = load i8, ptr %sunkaddr97, align 1
  %sunkaddr133 = getelementptr i8, ptr %sunkaddr121, i64 3
  store i8 %.507.3, ptr %sunkaddr133, align 1
  %.525.3 = add i64 %at.4.0, 4
  %.513.3 = add i64 %to.4.0, 4
  %lcmp.mod.not = icmp eq i64 %xtraiter15, 0
  br i1 %lcmp.mod.not, label %B424, label %B412.epil.preheader
}

define internal i32 @compiled_clock(ptr %retptr, ptr %excinfo, ptr %arg.data, i64 %arg.at, i64 %arg.end) {
B0:
  %0 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %.137.i = load i8, ptr %0, align 1
  %.138.i = zext i8 %.137.i to i64
  %1 = add i8 %.137.i, -58
  %or.cond.i = icmp ult i8 %1, -10
  br i1 %or.cond.i, label %B0.endif, label %B112.i

B112.i:
  %sunkaddr = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr1 = getelementptr i8, ptr %sunkaddr, i64 1
  %.137.1.i = load i8, ptr %sunkaddr1, align 1
  %.138.1.i = zext i8 %.137.1.i to i64
  %2 = add i8 %.137.1.i, -58
  %or.cond.1.i = icmp ult i8 %2, -10
  br i1 %or.cond.1.i, label %B0.endif, label %B112.1.i

B112.1.i:
  %3 = mul nuw nsw i64 %.138.i, 10
  %.164.1.i = add nsw i64 %3, -528
  %.167.1.i = add nsw i64 %.164.1.i, %.138.1.i
  br label %B0.endif

B148:
  %sunkaddr2 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr3 = getelementptr i8, ptr %sunkaddr2, i64 5
  %.119 = load i8, ptr %sunkaddr3, align 1
  %.121.not = icmp eq i8 %.119, 58
  br i1 %.121.not, label %B182, label %common.ret

common.ret:
  %.567.sink = phi i64 [ %.567, %B564 ], [ 0, %B182 ], [ 0, %B148 ], [ 0, %B0.endif.endif.endif ], [ 0, %B530 ], [ 0, %B326 ], [ 0, %B296 ], [ 0, %B392.else.if.preheader ], [ 0, %B392.else.if.5 ], [ 0, %B392.else.if.4 ], [ 0, %B392.else.if.3 ], [ 0, %B392.else.if.2 ], [ 0, %B392.else.if.1 ], [ 0, %B464.5 ]
  %at.6.0.sink = phi i64 [ %at.6.0, %B564 ], [ -1, %B182 ], [ -1, %B148 ], [ -1, %B0.endif.endif.endif ], [ -1, %B530 ], [ -1, %B326 ], [ -1, %B296 ], [ -1, %B392.else.if.preheader ], [ -1, %B392.else.if.5 ], [ -1, %B392.else.if.4 ], [ -1, %B392.else.if.3 ], [ -1, %B392.else.if.2 ], [ -1, %B392.else.if.1 ], [ -1, %B464.5 ]
  store i64 %.567.sink, ptr %retptr, align 8
  %retptr.repack152 = getelementptr i8, ptr %retptr, i64 8
  store i64 %at.6.0.sink, ptr %retptr.repack152, align 8
  ret i32 0

B182:
  %or.cond = icmp ugt i64 %storemerge.i, 23
  %.152 = icmp slt i64 %storemerge.i15, 0
  %or.cond145 = select i1 %or.cond, i1 true, i1 %.152
  %.155 = icmp ugt i64 %storemerge.i15, 59
  %or.cond146 = select i1 %or.cond145, i1 true, i1 %.155
  %.158 = icmp slt i64 %storemerge.i28, 0
  %or.cond147 = select i1 %or.cond146, i1 true, i1 %.158
  %.161 = icmp ugt i64 %storemerge.i28, 59
  %or.cond148 = select i1 %or.cond147, i1 true, i1 %.161
  br i1 %or.cond148, label %common.ret, label %B258

B258:
  %.186 = add nsw i64 %arg.at, 8
  %.205 = getelementptr i8, ptr %arg.data, i64 %.186
  %.206 = load i8, ptr %.205, align 1
  %.208 = icmp eq i8 %.206, 46
  br i1 %.208, label %B296, label %B564

B296:
  %.219 = add nsw i64 %arg.at, 9
  %.238 = icmp slt i64 %.219, %arg.end
  br i1 %.238, label %B326, label %common.ret

B326:
  %.248 = getelementptr i8, ptr %arg.data, i64 %.219
  %.249 = load i8, ptr %.248, align 1
  %.348 = zext i8 %.249 to i64
  %4 = add i8 %.249, -48
  %or.cond149 = icmp ult i8 %4, 10
  br i1 %or.cond149, label %B392.else.if.preheader, label %common.ret

B392.else.if.preheader:
  %5 = add nsw i64 %arg.end, -1
  %exitcond.not = icmp eq i64 %.219, %5
  br i1 %exitcond.not, label %common.ret, label %B464

B464:
  %6 = mul nuw nsw i64 %.348, 100000
  %.352 = add nsw i64 %6, -4800000
  %.364 = add nsw i64 %arg.at, 10
  %.385 = getelementptr i8, ptr %arg.data, i64 %.364
  %.386 = load i8, ptr %.385, align 1
  %.348.1 = zext i8 %.386 to i64
  %7 = add i8 %.386, -48
  %or.cond150 = icmp ult i8 %7, 10
  br i1 %or.cond150, label %B392.else.if.1, label %B530

B392.else.if.1:
  %exitcond.not.1 = icmp eq i64 %.364, %5
  br i1 %exitcond.not.1, label %common.ret, label %B464.1

B464.1:
  %8 = mul nuw nsw i64 %.348.1, 10000
  %.352.1 = add nsw i64 %6, -5280000
  %.354.1 = add nsw i64 %.352.1, %8
  %.364.1 = add nsw i64 %arg.at, 11
  %.385.1 = getelementptr i8, ptr %arg.data, i64 %.364.1
  %.386.1 = load i8, ptr %.385.1, align 1
  %.348.2 = zext i8 %.386.1 to i64
  %9 = add i8 %.386.1, -48
  %or.cond150.1 = icmp ult i8 %9, 10
  br i1 %or.cond150.1, label %B392.else.if.2, label %B530

B392.else.if.2:
  %exitcond.not.2 = icmp eq i64 %.364.1, %5
  br i1 %exitcond.not.2, label %common.ret, label %B464.2

B464.2:
  %10 = mul nuw nsw i64 %.348.2, 1000
  %.352.2 = add nsw i64 %.354.1, -48000
  %.354.2 = add nsw i64 %.352.2, %10
  %.364.2 = add nsw i64 %arg.at, 12
  %.385.2 = getelementptr i8, ptr %arg.data, i64 %.364.2
  %.386.2 = load i8, ptr %.385.2, align 1
  %.348.3 = zext i8 %.386.2 to i64
  %11 = add i8 %.386.2, -48
  %or.cond150.2 = icmp ult i8 %11, 10
  br i1 %or.cond150.2, label %B392.else.if.3, label %B530

B392.else.if.3:
  %exitcond.not.3 = icmp eq i64 %.364.2, %5
  br i1 %exitcond.not.3, label %common.ret, label %B464.3

B464.3:
  %12 = mul nuw nsw i64 %.348.3, 100
  %.352.3 = add nsw i64 %.354.2, -4800
  %.354.3 = add nsw i64 %.352.3, %12
  %.364.3 = add nsw i64 %arg.at, 13
  %.385.3 = getelementptr i8, ptr %arg.data, i64 %.364.3
  %.386.3 = load i8, ptr %.385.3, align 1
  %.348.4 = zext i8 %.386.3 to i64
  %13 = add i8 %.386.3, -48
  %or.cond150.3 = icmp ult i8 %13, 10
  br i1 %or.cond150.3, label %B392.else.if.4, label %B530

B392.else.if.4:
  %exitcond.not.4 = icmp eq i64 %.364.3, %5
  br i1 %exitcond.not.4, label %common.ret, label %B464.4

B464.4:
  %14 = mul nuw nsw i64 %.348.4, 10
  %.352.4 = add nsw i64 %.354.3, -480
  %.354.4 = add nsw i64 %.352.4, %14
  %.364.4 = add nsw i64 %arg.at, 14
  %.385.4 = getelementptr i8, ptr %arg.data, i64 %.364.4
  %.386.4 = load i8, ptr %.385.4, align 1
  %.348.5 = zext i8 %.386.4 to i64
  %15 = add i8 %.386.4, -48
  %or.cond150.4 = icmp ult i8 %15, 10
  br i1 %or.cond150.4, label %B392.else.if.5, label %B530

B392.else.if.5:
  %exitcond.not.5 = icmp eq i64 %.364.4, %5
  br i1 %exitcond.not.5, label %common.ret, label %B464.5

B464.5:
  %.350.5 = add nsw i64 %.354.4, -48
  %.354.5 = add nsw i64 %.350.5, %.348.5
  %.364.5 = add nsw i64 %arg.at, 15
  %.385.5 = getelementptr i8, ptr %arg.data, i64 %.364.5
  %.386.5 = load i8, ptr %.385.5, align 1
  %16 = add i8 %.386.5, -48
  %or.cond150.5 = icmp ult i8 %16, 10
  br i1 %or.cond150.5, label %common.ret, label %B530

B530:
  %.354.lcssa = phi i64 [ %.352, %B464 ], [ %.354.1, %B464.1 ], [ %.354.2, %B464.2 ], [ %.354.3, %B464.3 ], [ %.354.4, %B464.4 ], [ %.354.5, %B464.5 ]
  %.364.lcssa = phi i64 [ %.364, %B464 ], [ %.364.1, %B464.1 ], [ %.364.2, %B464.2 ], [ %.364.3, %B464.3 ], [ %.364.4, %B464.4 ], [ %.364.5, %B464.5 ]
  %.96.1.i = icmp eq i64 %arg.end, %.364.lcssa
  br i1 %.96.1.i, label %common.ret, label %B564

B564:
  %at.6.0 = phi i64 [ %.364.lcssa, %B530 ], [ %.186, %B258 ]
  %fraction.3.0 = phi i64 [ %.354.lcssa, %B530 ], [ 0, %B258 ]
  %.553 = mul nuw nsw i64 %storemerge.i, 3600
  %.557 = mul nuw nsw i64 %storemerge.i15, 60
  %.560 = add nuw nsw i64 %.557, %.553
  %.562 = add nuw nsw i64 %.560, %storemerge.i28
  %.565 = mul nuw nsw i64 %.562, 1000000
  %.567 = add nuw nsw i64 %fraction.3.0, %.565
  br label %common.ret

B0.endif:
  %storemerge.i = phi i64 [ -1000000, %B0 ], [ %.167.1.i, %B112.1.i ], [ -1000000, %B112.i ]
  %sunkaddr4 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr5 = getelementptr i8, ptr %sunkaddr4, i64 3
  %.137.i4 = load i8, ptr %sunkaddr5, align 1
  %.138.i5 = zext i8 %.137.i4 to i64
  %17 = add i8 %.137.i4, -58
  %or.cond.i6 = icmp ult i8 %17, -10
  br i1 %or.cond.i6, label %B0.endif.endif, label %B112.i7

B112.i7:
  %sunkaddr6 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr7 = getelementptr i8, ptr %sunkaddr6, i64 4
  %.137.1.i9 = load i8, ptr %sunkaddr7, align 1
  %.138.1.i12 = zext i8 %.137.1.i9 to i64
  %18 = add i8 %.137.1.i9, -58
  %or.cond.1.i10 = icmp ult i8 %18, -10
  br i1 %or.cond.1.i10, label %B0.endif.endif, label %B112.1.i11

B112.1.i11:
  %19 = mul nuw nsw i64 %.138.i5, 10
  %.164.1.i13 = add nsw i64 %19, -528
  %.167.1.i14 = add nsw i64 %.164.1.i13, %.138.1.i12
  br label %B0.endif.endif

B0.endif.endif:
  %storemerge.i15 = phi i64 [ -1000000, %B0.endif ], [ %.167.1.i14, %B112.1.i11 ], [ -1000000, %B112.i7 ]
  %sunkaddr8 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr9 = getelementptr i8, ptr %sunkaddr8, i64 6
  %.137.i17 = load i8, ptr %sunkaddr9, align 1
  %.138.i18 = zext i8 %.137.i17 to i64
  %20 = add i8 %.137.i17, -58
  %or.cond.i19 = icmp ult i8 %20, -10
  br i1 %or.cond.i19, label %B0.endif.endif.endif, label %B112.i20

B112.i20:
  %sunkaddr10 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr11 = getelementptr i8, ptr %sunkaddr10, i64 7
  %.137.1.i22 = load i8, ptr %sunkaddr11, align 1
  %.138.1.i25 = zext i8 %.137.1.i22 to i64
  %21 = add i8 %.137.1.i22, -58
  %or.cond.1.i23 = icmp ult i8 %21, -10
  br i1 %or.cond.1.i23, label %B0.endif.endif.endif, label %B112.1.i24

B112.1.i24:
  %22 = mul nuw nsw i64 %.138.i18, 10
  %.164.1.i26 = add nsw i64 %22, -528
  %.167.1.i27 = add nsw i64 %.164.1.i26, %.138.1.i25
  br label %B0.endif.endif.endif

B0.endif.endif.endif:
  %storemerge.i28 = phi i64 [ -1000000, %B0.endif.endif ], [ %.167.1.i27, %B112.1.i24 ], [ -1000000, %B112.i20 ]
  %sunkaddr12 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr13 = getelementptr i8, ptr %sunkaddr12, i64 2
  %.111 = load i8, ptr %sunkaddr13, align 1
  %.113.not = icmp eq i8 %.111, 58
  br i1 %.113.not, label %B148, label %common.ret
}

define internal i32 @compiled_exact(ptr %retptr, ptr %excinfo, ptr %arg.data, i64 %arg.at, i64 %arg.end, i64 %arg.scale, i64 %arg.bound) {
B0:
  %.47 = alloca [4 x i64], align 8
  %.fca.1.gep = getelementptr i8, ptr %.47, i64 8
  %.fca.3.gep = getelementptr i8, ptr %.47, i64 24
  %excinfo.1 = alloca ptr, align 8
  %.25 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %.26 = load i8, ptr %.25, align 1
  %.28 = icmp eq i8 %.26, 34
  %.35 = zext i1 %.28 to i64
  %spec.select = add nsw i64 %arg.at, %.35
  call void @llvm.memset.p0.i64(ptr align 8 dereferenceable(32) %.47, i8 0, i64 32, i1 false)
  %.51 = call i32 @compiled_number(ptr %.47, ptr %excinfo.1, ptr %arg.data, i64 %spec.select, i64 %arg.end)
  %.61.fca.0.load = load i64, ptr %.47, align 8
  %.61.fca.1.load = load i64, ptr %.fca.1.gep, align 8
  %.61.fca.3.load = load i64, ptr %.fca.3.gep, align 8
  switch i32 %.51, label %B42.if.if [
    i32 -2, label %B42.endif
    i32 0, label %B42.endif
  ]

common.ret:
  %common.ret.op = phi i32 [ 0, %B108 ], [ 0, %B152 ], [ 0, %B226 ], [ 0, %B292 ], [ 0, %B354 ], [ 0, %B358 ], [ %.51, %B42.if.if ]
  ret i32 %common.ret.op

B108:
  store i64 0, ptr %retptr, align 8
  %retptr.repack103 = getelementptr i8, ptr %retptr, i64 8
  store i64 -1, ptr %retptr.repack103, align 8
  br label %common.ret

B112:
  %0 = icmp eq i8 %.26, 34
  br i1 %0, label %B116, label %B166

B116:
  %.152.not = icmp slt i64 %.61.fca.3.load, %arg.end
  br i1 %.152.not, label %B128, label %B152

B128:
  %.158 = getelementptr i8, ptr %arg.data, i64 %.61.fca.3.load
  %.159 = load i8, ptr %.158, align 1
  %.163.not = icmp eq i8 %.159, 34
  br i1 %.163.not, label %B156, label %B152

B152:
  store i64 0, ptr %retptr, align 8
  %retptr.repack102 = getelementptr i8, ptr %retptr, i64 8
  store i64 -1, ptr %retptr.repack102, align 8
  br label %common.ret

B156:
  %.188 = add nuw nsw i64 %.61.fca.3.load, 1
  br label %B166

B166:
  %at.1.2.0 = phi i64 [ %.188, %B156 ], [ %.61.fca.3.load, %B112 ]
  %.212 = add nsw i64 %.61.fca.1.load, %arg.scale
  %.223 = icmp sgt i64 %.212, 0
  br i1 %.223, label %B188.else.if.preheader, label %B262

B188.else.if.preheader:
  %.251 = sdiv i64 %arg.bound, 10
  %.252 = srem i64 %arg.bound, 10
  %.252.lobit = ashr i64 %.252, 63
  %.240.1 = add nsw i64 %.252.lobit, %.251
  %.295.neg = sdiv i64 %arg.bound, -10
  %.296.lobit.neg = lshr i64 %.252, 63
  %.284.1.neg = add nsw i64 %.296.lobit.neg, %.295.neg
  %1 = add nuw i64 %.212, 1
  br label %B188.else.if

B226:
  store i64 0, ptr %retptr, align 8
  %retptr.repack101 = getelementptr i8, ptr %retptr, i64 8
  store i64 -1, ptr %retptr.repack101, align 8
  br label %common.ret

B230:
  %.340 = mul nsw i64 %mantissa.3.0, 10
  %lsr.iv.next = add i64 %lsr.iv, -1
  %.351 = icmp sgt i64 %lsr.iv.next, 1
  br i1 %.351, label %B188.else.if, label %B328

B262:
  %.377 = icmp slt i64 %.212, 0
  br i1 %.377, label %B274.else.if.preheader, label %B328

B274.else.if.preheader:
  br label %B274.else.if

B292:
  store i64 0, ptr %retptr, align 8
  %retptr.repack100 = getelementptr i8, ptr %retptr, i64 8
  store i64 -1, ptr %retptr.repack100, align 8
  br label %common.ret

B328:
  %mantissa.6.1 = phi i64 [ %.61.fca.0.load, %B262 ], [ %.340, %B230 ], [ %.466, %B296.else.if ]
  %.509 = icmp sge i64 %mantissa.6.1, %arg.bound
  %.512 = sub nsw i64 0, %arg.bound
  %.516 = icmp sle i64 %mantissa.6.1, %.512
  %or.cond95 = select i1 %.509, i1 true, i1 %.516
  br i1 %or.cond95, label %B354, label %B358

B354:
  store i64 0, ptr %retptr, align 8
  %sunkaddr11 = getelementptr inbounds i8, ptr %retptr, i64 8
  store i64 -1, ptr %sunkaddr11, align 8
  br label %common.ret

B358:
  store i64 %mantissa.6.1, ptr %retptr, align 8
  %sunkaddr12 = getelementptr inbounds i8, ptr %retptr, i64 8
  store i64 %at.1.2.0, ptr %sunkaddr12, align 8
  br label %common.ret

B42.endif:
  %.fca.2.gep = getelementptr i8, ptr %.47, i64 16
  %.61.fca.2.load = load i64, ptr %.fca.2.gep, align 8
  %.104 = icmp slt i64 %.61.fca.3.load, 0
  %.107 = and i64 %.61.fca.2.load, 2
  %.110 = icmp ne i64 %.107, 0
  %or.cond = select i1 %.104, i1 true, i1 %.110
  br i1 %or.cond, label %B108, label %B112

B42.if.if:
  store ptr null, ptr %excinfo, align 8
  br label %common.ret

B188.else.if:
  %lsr.iv = phi i64 [ %1, %B188.else.if.preheader ], [ %lsr.iv.next, %B230 ]
  %mantissa.3.0 = phi i64 [ %.61.fca.0.load, %B188.else.if.preheader ], [ %.340, %B230 ]
  %.274 = icmp sgt i64 %mantissa.3.0, %.240.1
  %.319 = icmp slt i64 %mantissa.3.0, %.284.1.neg
  %or.cond104 = select i1 %.274, i1 true, i1 %.319
  br i1 %or.cond104, label %B226, label %B230

B274.else.if:
  %lsr.iv9 = phi i64 [ %math, %B296.else.if ], [ %.212, %B274.else.if.preheader ]
  %mantissa.4.0 = phi i64 [ %.61.fca.0.load, %B274.else.if.preheader ], [ %.466, %B296.else.if ]
  %.406 = srem i64 %mantissa.4.0, 10
  %.466 = sdiv i64 %mantissa.4.0, 10
  %.427.not = icmp eq i64 %.406, 0
  br i1 %.427.not, label %B296.else.if, label %B292

B296.else.if:
  %2 = call { i64, i1 } @llvm.uadd.with.overflow.i64(i64 %lsr.iv9, i64 1)
  %math = extractvalue { i64, i1 } %2, 0
  %ov13 = extractvalue { i64, i1 } %2, 1
  br i1 %ov13, label %B328, label %B274.else.if
}

define internal i32 @compiled_known(ptr %retptr, ptr %excinfo, ptr %arg.data, i64 %arg.at, i64 %arg.end, ptr %arg.plan, ptr %arg.names, i64 %arg.fields, i64 %arg.expected) {
B0:
  %.321 = alloca i64, align 8
  %excinfo.3 = alloca ptr, align 8
  %.27 = icmp slt i64 %arg.expected, %arg.fields
  br i1 %.27, label %B16, label %B120.endif

B16:
  %.idx.i = shl i64 %arg.expected, 6
  %0 = getelementptr i8, ptr %arg.plan, i64 %.idx.i
  %.18.i = getelementptr i8, ptr %0, i64 8
  %.19.i = load i64, ptr %.18.i, align 8
  %.21.i = getelementptr i8, ptr %0, i64 16
  %.22.i = load i64, ptr %.21.i, align 8
  %.30.i = sub nsw i64 %arg.end, %arg.at
  %.32.not.i = icmp slt i64 %.22.i, %.30.i
  br i1 %.32.not.i, label %B106.i, label %B120.endif

B106.i:
  %1 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %.38.i = getelementptr i8, ptr %1, i64 %.22.i
  %.39.i = load i8, ptr %.38.i, align 1
  %.41.not.i = icmp eq i8 %.39.i, 34
  br i1 %.41.not.i, label %B140.i, label %B120.endif

B140.i:
  %.65.i = icmp sgt i64 %.22.i, 0
  br i1 %.65.i, label %B156.i, label %_ZN11json_kernel8is_namedB44c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsBAK4JIagIAE8uint8_2axx8int64_2a8uint8_2ax.exit

B156.i:
  %.79.i = load i8, ptr %1, align 1
  %.86.i = getelementptr i8, ptr %arg.names, i64 %.19.i
  %.87.i = load i8, ptr %.86.i, align 1
  %.88.i = icmp eq i8 %.79.i, %.87.i
  br i1 %.88.i, label %B204.preheader.i, label %_ZN11json_kernel8is_namedB44c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsBAK4JIagIAE8uint8_2axx8int64_2a8uint8_2ax.exit

B204.preheader.i:
  %2 = add nsw i64 %.22.i, -1
  %3 = add i64 %arg.at, 1
  %scevgep54 = getelementptr i8, ptr %arg.data, i64 %3
  %4 = add i64 %.19.i, 1
  %scevgep56 = getelementptr i8, ptr %arg.names, i64 %4
  br label %B204.i

B204.i:
  %more.2.1.i = phi i64 [ %.94.i, %B226.i ], [ 0, %B204.preheader.i ]
  %exitcond.not.i = icmp eq i64 %2, %more.2.1.i
  br i1 %exitcond.not.i, label %B56, label %B226.i

B226.i:
  %.94.i = add nuw nsw i64 %more.2.1.i, 1
  %scevgep55 = getelementptr i8, ptr %scevgep54, i64 %more.2.1.i
  %.118.i = load i8, ptr %scevgep55, align 1
  %scevgep57 = getelementptr i8, ptr %scevgep56, i64 %more.2.1.i
  %.126.i = load i8, ptr %scevgep57, align 1
  %.127.i = icmp eq i8 %.118.i, %.126.i
  br i1 %.127.i, label %B204.i, label %_ZN11json_kernel8is_namedB44c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsBAK4JIagIAE8uint8_2axx8int64_2a8uint8_2ax.exit

_ZN11json_kernel8is_namedB44c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsBAK4JIagIAE8uint8_2axx8int64_2a8uint8_2ax.exit:
  %more.3.0.i = phi i64 [ 0, %B156.i ], [ 0, %B140.i ], [ %.94.i, %B226.i ]
  %.150.i.not = icmp eq i64 %more.3.0.i, %.22.i
  br i1 %.150.i.not, label %B56, label %B120.endif

common.ret:
  %common.ret.op = phi i32 [ 0, %B56 ], [ 0, %B194 ], [ 0, %B264.endif ], [ %.325, %B264.if.if ]
  ret i32 %common.ret.op

B56:
  %.89 = add i64 %arg.at, 1
  %.92 = add i64 %.89, %.22.i
  store i64 %arg.expected, ptr %retptr, align 8
  %retptr.repack87 = getelementptr i8, ptr %retptr, i64 8
  store i64 %.92, ptr %retptr.repack87, align 8
  br label %common.ret

B152:
  %.196108111 = phi i64 [ %.203, %B150.backedge ], [ 0, %B152.preheader ]
  %.203 = add nuw nsw i64 %.196108111, 1
  %.idx.i6 = shl i64 %.196108111, 6
  %5 = getelementptr i8, ptr %arg.plan, i64 %.idx.i6
  %.18.i7 = getelementptr i8, ptr %5, i64 8
  %.19.i8 = load i64, ptr %.18.i7, align 8
  %.21.i9 = getelementptr i8, ptr %5, i64 16
  %.22.i10 = load i64, ptr %.21.i9, align 8
  %.32.not.i12 = icmp slt i64 %.22.i10, %.30.i11
  br i1 %.32.not.i12, label %B106.i14, label %B150.backedge

B106.i14:
  %.38.i15 = getelementptr i8, ptr %7, i64 %.22.i10
  %.39.i16 = load i8, ptr %.38.i15, align 1
  %.41.not.i17 = icmp eq i8 %.39.i16, 34
  br i1 %.41.not.i17, label %B140.i18, label %B150.backedge

B140.i18:
  %.65.i19 = icmp sgt i64 %.22.i10, 0
  br i1 %.65.i19, label %B156.i24, label %_ZN11json_kernel8is_namedB44c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsBAK4JIagIAE8uint8_2axx8int64_2a8uint8_2ax.exit42

B156.i24:
  %.79.i25 = load i8, ptr %7, align 1
  %.86.i26 = getelementptr i8, ptr %arg.names, i64 %.19.i8
  %.87.i27 = load i8, ptr %.86.i26, align 1
  %.88.i28 = icmp eq i8 %.79.i25, %.87.i27
  br i1 %.88.i28, label %B204.preheader.i29, label %_ZN11json_kernel8is_namedB44c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsBAK4JIagIAE8uint8_2axx8int64_2a8uint8_2ax.exit42

B204.preheader.i29:
  %6 = add nsw i64 %.22.i10, -1
  %scevgep52 = getelementptr i8, ptr %scevgep51, i64 %.19.i8
  br label %B204.i32

B204.i32:
  %more.2.1.i33 = phi i64 [ %.94.i36, %B226.i35 ], [ 0, %B204.preheader.i29 ]
  %exitcond.not.i34 = icmp eq i64 %6, %more.2.1.i33
  br i1 %exitcond.not.i34, label %B194, label %B226.i35

B226.i35:
  %.94.i36 = add nuw nsw i64 %more.2.1.i33, 1
  %scevgep50 = getelementptr i8, ptr %scevgep, i64 %more.2.1.i33
  %.118.i38 = load i8, ptr %scevgep50, align 1
  %scevgep53 = getelementptr i8, ptr %scevgep52, i64 %more.2.1.i33
  %.126.i40 = load i8, ptr %scevgep53, align 1
  %.127.i41 = icmp eq i8 %.118.i38, %.126.i40
  br i1 %.127.i41, label %B204.i32, label %_ZN11json_kernel8is_namedB44c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsBAK4JIagIAE8uint8_2axx8int64_2a8uint8_2ax.exit42

_ZN11json_kernel8is_namedB44c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsBAK4JIagIAE8uint8_2axx8int64_2a8uint8_2ax.exit42:
  %more.3.0.i21 = phi i64 [ 0, %B156.i24 ], [ 0, %B140.i18 ], [ %.94.i36, %B226.i35 ]
  %.150.i22.not = icmp eq i64 %more.3.0.i21, %.22.i10
  br i1 %.150.i22.not, label %B194, label %B150.backedge

B194:
  %.289 = add i64 %arg.at, 1
  %.292 = add i64 %.289, %.22.i10
  store i64 %.196108111, ptr %retptr, align 8
  %retptr.repack92 = getelementptr i8, ptr %retptr, i64 8
  store i64 %.292, ptr %retptr.repack92, align 8
  br label %common.ret

B264:
  store i64 0, ptr %.321, align 8
  %.325 = call i32 @compiled_name_end(ptr %.321, ptr %excinfo.3, ptr %arg.data, i64 %arg.at, i64 %arg.end)
  %cond = icmp eq i32 %.325, 0
  br i1 %cond, label %B264.endif, label %B264.if.if

B120.endif:
  %.190110.not = icmp slt i64 %arg.fields, 1
  br i1 %.190110.not, label %B264, label %B152.preheader

B152.preheader:
  %.30.i11 = sub nsw i64 %arg.end, %arg.at
  %7 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %scevgep51 = getelementptr i8, ptr %arg.names, i64 1
  %8 = add i64 %arg.at, 1
  %scevgep = getelementptr i8, ptr %arg.data, i64 %8
  br label %B152

B150.backedge:
  %exitcond.not = icmp eq i64 %arg.fields, %.203
  br i1 %exitcond.not, label %B264, label %B152

B264.endif:
  %.335 = load i64, ptr %.321, align 8
  %.355 = icmp sgt i64 %.335, -1
  %.361 = add nuw nsw i64 %.335, 1
  %"$phi324.1.2.0" = select i1 %.355, i64 %.361, i64 -1
  store i64 -1, ptr %retptr, align 8
  %retptr.repack89 = getelementptr i8, ptr %retptr, i64 8
  store i64 %"$phi324.1.2.0", ptr %retptr.repack89, align 8
  br label %common.ret

B264.if.if:
  store ptr null, ptr %excinfo, align 8
  br label %common.ret
}

define internal i32 @compiled_named(ptr %retptr, ptr %excinfo, ptr %arg.data, i64 %arg.at, i64 %arg.end, ptr %arg.places, i64 %arg.first) {
B0:
  %.77 = alloca i64, align 8
  %excinfo.2 = alloca ptr, align 8
  %.19.i = icmp slt i64 %arg.at, %arg.end
  br i1 %.19.i, label %B16.i, label %B0.endif

B16.i:
  %.29.i = getelementptr i8, ptr %arg.data, i64 %arg.at
  %.30.i = load i8, ptr %.29.i, align 1
  %0 = zext i8 %.30.i to i32
  switch i32 %0, label %B0.endif [
    i32 32, label %B112.preheader.i
    i32 10, label %B112.preheader.i
    i32 13, label %B112.preheader.i
    i32 9, label %B112.preheader.i
  ]

B112.preheader.i:
  %.7242.i = add nsw i64 %arg.at, 1
  %.8343.i = icmp slt i64 %.7242.i, %arg.end
  br i1 %.8343.i, label %B134.i.preheader, label %B0.endif

B134.i.preheader:
  br label %B134.i

B134.i:
  %.7244.i = phi i64 [ %.72.i, %B231.i ], [ %.7242.i, %B134.i.preheader ]
  %.89.i = getelementptr i8, ptr %arg.data, i64 %.7244.i
  %.90.i = load i8, ptr %.89.i, align 1
  %1 = zext i8 %.90.i to i32
  switch i32 %1, label %B0.endif.loopexit [
    i32 32, label %B231.i
    i32 10, label %B231.i
    i32 13, label %B231.i
    i32 9, label %B231.i
  ]

B231.i:
  %.72.i = add i64 %.7244.i, 1
  %exitcond.not.i = icmp eq i64 %arg.end, %.72.i
  br i1 %exitcond.not.i, label %B74, label %B134.i

B50:
  %.55 = getelementptr i8, ptr %arg.data, i64 %at.3.0.i
  %.56 = load i8, ptr %.55, align 1
  %.58.not = icmp eq i8 %.56, 34
  br i1 %.58.not, label %B78, label %B74

common.ret:
  %common.ret.op = phi i32 [ 0, %B74 ], [ 0, %B174 ], [ 0, %B266 ], [ %.81, %B78.if.if ]
  ret i32 %common.ret.op

B74:
  store i64 -1, ptr %retptr, align 8
  br label %common.ret

B78:
  %.74 = add nsw i64 %at.3.0.i, 1
  store i64 0, ptr %.77, align 8
  %.81 = call i32 @compiled_name_end(ptr %.77, ptr %excinfo.2, ptr %arg.data, i64 %.74, i64 %arg.end)
  %.91 = load i64, ptr %.77, align 8
  %cond = icmp eq i32 %.81, 0
  br i1 %cond, label %B78.endif, label %B78.if.if

B130:
  %.21.i = load i64, ptr %arg.places, align 8
  %.26.i = icmp eq i64 %.21.i, 200
  br i1 %.26.i, label %B174, label %B46.endif.i

B80.i:
  %.127105109.i = phi i64 [ %.83.i, %B80.lr.ph.i ], [ %.137.i, %B344.i ]
  %.134106108.i = phi i64 [ %arg.first, %B80.lr.ph.i ], [ %.141.i, %B344.i ]
  %.137.i = add nsw i64 %.127105109.i, -1
  %.141.i = add i64 %.134106108.i, 1
  %.idx.i = shl i64 %.134106108.i, 4
  %2 = getelementptr i8, ptr %arg.places, i64 %.idx.i
  %.169.i = getelementptr i8, ptr %2, i64 8
  %.170.i = load i64, ptr %.169.i, align 8
  %.175.i = getelementptr i8, ptr %2, i64 16
  %.176.i = load i64, ptr %.175.i, align 8
  %.186.i = sub nsw i64 %.176.i, %.170.i
  %.190.i = icmp eq i64 %.186.i, %.189.i
  br i1 %.190.i, label %B174.i, label %B344.i

B174.i:
  %.203.i = icmp sgt i64 %.176.i, %.170.i
  br i1 %.203.i, label %B196.i, label %B320.i

B196.i:
  %.216.i = getelementptr i8, ptr %arg.data, i64 %.170.i
  %.217.i = load i8, ptr %.216.i, align 1
  %sunkaddr = getelementptr i8, ptr %arg.data, i64 %.74
  %.225.i = load i8, ptr %sunkaddr, align 1
  %.226.i = icmp eq i8 %.217.i, %.225.i
  br i1 %.226.i, label %B244.preheader.i, label %B320.i

B244.preheader.i:
  %3 = xor i64 %.170.i, -1
  %4 = add i64 %.176.i, %3
  %scevgep1.i = getelementptr i8, ptr %scevgep.i, i64 %.170.i
  br label %B244.i

B244.i:
  %more.2.3.i = phi i64 [ %.232.i, %B272.i ], [ 0, %B244.preheader.i ]
  %exitcond.not.i1 = icmp eq i64 %4, %more.2.3.i
  br i1 %exitcond.not.i1, label %B320.i, label %B272.i

B272.i:
  %.232.i = add nuw i64 %more.2.3.i, 1
  %scevgep2.i = getelementptr i8, ptr %scevgep1.i, i64 %more.2.3.i
  %.258.i = load i8, ptr %scevgep2.i, align 1
  %scevgep16 = getelementptr i8, ptr %scevgep, i64 %more.2.3.i
  %.266.i = load i8, ptr %scevgep16, align 1
  %.267.i = icmp eq i8 %.258.i, %.266.i
  br i1 %.267.i, label %B244.i, label %B320.i

B320.i:
  %more.3.2.i = phi i64 [ 0, %B196.i ], [ 0, %B174.i ], [ %.189.i, %B244.i ], [ %.232.i, %B272.i ]
  %.282.i = add nsw i64 %more.3.2.i, %.170.i
  %.288.i = icmp eq i64 %.282.i, %.176.i
  br i1 %.288.i, label %B174, label %B344.i

B344.i:
  %.128.i = icmp sgt i64 %.127105109.i, 1
  br i1 %.128.i, label %B80.i, label %B178

B46.endif.i:
  %.83.i = sub i64 %.21.i, %arg.first
  %.128107.not.i = icmp slt i64 %.83.i, 1
  br i1 %.128107.not.i, label %B178, label %B80.lr.ph.i

B80.lr.ph.i:
  %.189.i = sub nsw i64 %.91, %.74
  %scevgep.i = getelementptr i8, ptr %arg.data, i64 1
  %5 = add i64 %at.3.0.i, 2
  %scevgep = getelementptr i8, ptr %arg.data, i64 %5
  br label %B80.i

B174:
  store i64 -1, ptr %retptr, align 8
  br label %common.ret

B178:
  %.idx111.i = shl i64 %.21.i, 4
  %6 = getelementptr i8, ptr %arg.places, i64 %.idx111.i
  %.323.i = getelementptr i8, ptr %6, i64 8
  store i64 %.74, ptr %.323.i, align 8
  %.332.i = getelementptr i8, ptr %6, i64 16
  store i64 %.91, ptr %.332.i, align 8
  %.337.i = add nsw i64 %.21.i, 1
  store i64 %.337.i, ptr %arg.places, align 8
  %.170 = add nuw nsw i64 %.91, 1
  %.19.i2 = icmp slt i64 %.170, %arg.end
  br i1 %.19.i2, label %B16.i4, label %B178.endif

B16.i4:
  %.29.i5 = getelementptr i8, ptr %arg.data, i64 %.170
  %.30.i6 = load i8, ptr %.29.i5, align 1
  %7 = zext i8 %.30.i6 to i32
  switch i32 %7, label %B178.endif [
    i32 32, label %B112.preheader.i7
    i32 10, label %B112.preheader.i7
    i32 13, label %B112.preheader.i7
    i32 9, label %B112.preheader.i7
  ]

B112.preheader.i7:
  %.7242.i8 = add nuw nsw i64 %.91, 2
  %.8343.i9 = icmp slt i64 %.7242.i8, %arg.end
  br i1 %.8343.i9, label %B134.i10.preheader, label %B178.endif

B134.i10.preheader:
  br label %B134.i10

B134.i10:
  %.7244.i11 = phi i64 [ %.72.i15, %B231.i14 ], [ %.7242.i8, %B134.i10.preheader ]
  %.89.i12 = getelementptr i8, ptr %arg.data, i64 %.7244.i11
  %.90.i13 = load i8, ptr %.89.i12, align 1
  %8 = zext i8 %.90.i13 to i32
  switch i32 %8, label %B178.endif.loopexit [
    i32 32, label %B231.i14
    i32 10, label %B231.i14
    i32 13, label %B231.i14
    i32 9, label %B231.i14
  ]

B231.i14:
  %.72.i15 = add i64 %.7244.i11, 1
  %exitcond.not.i16 = icmp eq i64 %arg.end, %.72.i15
  br i1 %exitcond.not.i16, label %B266, label %B134.i10

B230:
  %.210 = getelementptr i8, ptr %arg.data, i64 %at.3.0.i3
  %.211 = load i8, ptr %.210, align 1
  %.215 = icmp eq i8 %.211, 58
  %.218 = add nsw i64 %at.3.0.i3, 1
  %spec.select = select i1 %.215, i64 %.218, i64 -1
  br label %B266

B266:
  %"$phi266.0.2.0" = phi i64 [ %spec.select, %B230 ], [ -1, %B178.endif ], [ -1, %B231.i14 ]
  store i64 %"$phi266.0.2.0", ptr %retptr, align 8
  br label %common.ret

B0.endif.loopexit:
  br label %B0.endif

B0.endif:
  %at.3.0.i = phi i64 [ %arg.at, %B16.i ], [ %arg.at, %B0 ], [ %.7242.i, %B112.preheader.i ], [ %.7244.i, %B0.endif.loopexit ]
  %.51.not = icmp slt i64 %at.3.0.i, %arg.end
  br i1 %.51.not, label %B50, label %B74

B78.endif:
  %.105 = icmp slt i64 %.91, 0
  br i1 %.105, label %B174, label %B130

B78.if.if:
  store ptr null, ptr %excinfo, align 8
  br label %common.ret

B178.endif.loopexit:
  br label %B178.endif

B178.endif:
  %at.3.0.i3 = phi i64 [ %.170, %B16.i4 ], [ %.170, %B178 ], [ %.7242.i8, %B112.preheader.i7 ], [ %.7244.i11, %B178.endif.loopexit ]
  %.204 = icmp slt i64 %at.3.0.i3, %arg.end
  br i1 %.204, label %B230, label %B266
}

define internal i32 @compiled_parse(ptr %retptr, ptr %excinfo, ptr %arg.data, ptr %arg.ends, i64 %arg.rows, i64 %arg.fields, i64 %arg.needed, ptr %arg.plan, ptr %arg.names, ptr %arg.ints, ptr %arg.reals, ptr %arg.flags, ptr %arg.text_ends, ptr %arg.texts, i64 %arg.room, ptr %arg.valid, ptr %arg.doubts, ptr %arg.hard, ptr %arg.used, ptr %arg.powers, ptr %arg.places) {
B0.endif:
  %.229 = alloca i8, align 1
  %excinfo.1 = alloca ptr, align 8
  store ptr null, ptr %excinfo.1, align 8
  %.146141.not = icmp slt i64 %arg.rows, 1
  br i1 %.146141.not, label %B462, label %B40.lr.ph

B40.lr.ph:
  %.443 = add nuw nsw i64 %arg.rows, 1
  br label %B40

B38.loopexit:
  %scevgep19 = getelementptr i8, ptr %lsr.iv18, i64 1
  %exitcond154.not = icmp eq i64 %.159, %arg.rows
  br i1 %exitcond154.not, label %B462, label %B40

B40:
  %lsr.iv18 = phi ptr [ %arg.valid, %B40.lr.ph ], [ %scevgep19, %B38.loopexit ]
  %doubtful.2.0146 = phi i64 [ 0, %B40.lr.ph ], [ %doubtful.3.1, %B38.loopexit ]
  %.152134144 = phi i64 [ 0, %B40.lr.ph ], [ %.159, %B38.loopexit ]
  %.159 = add nuw nsw i64 %.152134144, 1
  %.193 = getelementptr i32, ptr %arg.ends, i64 %.152134144
  %.194 = load i32, ptr %.193, align 4
  %.195 = sext i32 %.194 to i64
  %.200 = getelementptr i8, ptr %.193, i64 4
  %.201 = load i32, ptr %.200, align 4
  %.202 = sext i32 %.201 to i64
  %sunkaddr = mul i64 %arg.fields, 8
  %sunkaddr23 = getelementptr i8, ptr %arg.used, i64 %sunkaddr
  %.207 = load i64, ptr %sunkaddr23, align 8
  store i8 0, ptr %.229, align 1
  %.233 = call i32 @compiled_filled_row(ptr %.229, ptr %excinfo.1, ptr %arg.data, i64 %.195, i64 %.202, i64 %.152134144, i64 %arg.rows, i64 %arg.fields, i64 %arg.needed, ptr %arg.plan, ptr %arg.names, ptr %arg.ints, ptr %arg.reals, ptr %arg.flags, ptr %arg.texts, i64 %arg.room, ptr %arg.valid, ptr %arg.hard, ptr %arg.used, ptr %arg.powers, ptr %arg.places)
  %.234 = load ptr, ptr %excinfo.1, align 8
  %.243 = load i8, ptr %.229, align 1
  %.246.not = icmp eq i8 %.243, 0
  br i1 %.246.not, label %B40.endif.thread, label %B40.endif

B178:
  %.268 = add nsw i64 %doubtful.2.0146, 1
  %.276 = getelementptr i8, ptr %arg.doubts, i64 %.152134144
  store i8 1, ptr %.276, align 1
  %sunkaddr24 = mul i64 %arg.fields, 8
  %sunkaddr25 = getelementptr i8, ptr %arg.used, i64 %sunkaddr24
  store i64 %.207, ptr %sunkaddr25, align 8
  br label %B208.endif

B240:
  %lsr.iv22 = phi i64 [ %arg.fields, %B240.preheader ], [ %lsr.iv.next, %B458 ]
  %lsr.iv20 = phi ptr [ %lsr.iv18, %B240.preheader ], [ %scevgep21, %B458 ]
  %lsr.iv = phi ptr [ %arg.plan, %B240.preheader ], [ %scevgep, %B458 ]
  %0 = icmp eq i8 %.243, 0
  br i1 %0, label %B268, label %B268.thread

B268:
  store i8 0, ptr %lsr.iv20, align 1
  %.428 = load i64, ptr %lsr.iv, align 8
  %.429 = icmp eq i64 %.428, 0
  br i1 %.429, label %B408, label %B458

B268.thread:
  %.428158 = load i64, ptr %lsr.iv, align 8
  %.429159 = icmp eq i64 %.428158, 0
  br i1 %.429159, label %B334.B430_crit_edge, label %B458

B334.B430_crit_edge:
  %scevgep16 = getelementptr i8, ptr %lsr.iv, i64 40
  %.438163 = load i64, ptr %scevgep16, align 8
  %.445164 = mul nsw i64 %.438163, %.443
  %.447165 = add nsw i64 %.445164, %.152134144
  %.465.phi.trans.insert = getelementptr i64, ptr %arg.used, i64 %.438163
  %.466.pre = load i64, ptr %.465.phi.trans.insert, align 8
  %1 = trunc i64 %.466.pre to i32
  br label %B430

B408:
  %scevgep17 = getelementptr i8, ptr %lsr.iv, i64 40
  %.438 = load i64, ptr %scevgep17, align 8
  %.445 = mul nsw i64 %.438, %.443
  %.447 = add nsw i64 %.445, %.152134144
  %.455 = getelementptr i32, ptr %arg.text_ends, i64 %.447
  %.456 = load i32, ptr %.455, align 4
  %.459 = sext i32 %.456 to i64
  %.460 = getelementptr i64, ptr %arg.used, i64 %.438
  store i64 %.459, ptr %.460, align 8
  br label %B430

B430:
  %.447167 = phi i64 [ %.447165, %B334.B430_crit_edge ], [ %.447, %B408 ]
  %.466 = phi i32 [ %1, %B334.B430_crit_edge ], [ %.456, %B408 ]
  %2 = getelementptr i32, ptr %arg.text_ends, i64 %.447167
  %.475 = getelementptr i8, ptr %2, i64 4
  store i32 %.466, ptr %.475, align 4
  br label %B458

B458:
  %scevgep = getelementptr i8, ptr %lsr.iv, i64 64
  %scevgep21 = getelementptr i8, ptr %lsr.iv20, i64 %arg.rows
  %lsr.iv.next = add i64 %lsr.iv22, -1
  %exitcond.not = icmp eq i64 %lsr.iv.next, 0
  br i1 %exitcond.not, label %B38.loopexit, label %B240

common.ret:
  %common.ret.op = phi i32 [ 0, %B462 ], [ %.233, %B40.endif.if.if ]
  ret i32 %common.ret.op

B462:
  %doubtful.2.0.lcssa = phi i64 [ 0, %B0.endif ], [ %doubtful.3.1, %B38.loopexit ]
  store i64 %doubtful.2.0.lcssa, ptr %retptr, align 8
  br label %common.ret

B40.endif:
  %3 = icmp eq i32 %.233, 0
  br i1 %3, label %B208.endif, label %B40.endif.if.if

B40.endif.thread:
  %4 = icmp eq i32 %.233, 0
  br i1 %4, label %B178, label %B40.endif.if.if

B40.endif.if.if:
  %.241.le = icmp sgt i32 %.233, 0
  %.242.le = select i1 %.241.le, ptr %.234, ptr undef
  store ptr %.242.le, ptr %excinfo, align 8
  br label %common.ret

B208.endif:
  %doubtful.3.1 = phi i64 [ %.268, %B178 ], [ %doubtful.2.0146, %B40.endif ]
  %5 = icmp slt i64 %arg.fields, 1
  br i1 %5, label %B38.loopexit, label %B240.preheader

B240.preheader:
  br label %B240
}

define internal i32 @compiled_escape(ptr %retptr, ptr %excinfo, ptr %arg.data, i64 %arg.at, i64 %arg.end) {
B0:
  %.15.not = icmp slt i64 %arg.at, %arg.end
  br i1 %.15.not, label %B20, label %common.ret

common.ret:
  %"$phi192.0.2.0.sink.i.sink" = phi i64 [ 12, %B216 ], [ 10, %B20 ], [ 8, %B194 ], [ 13, %B178 ], [ 9, %B162 ], [ -1, %B0 ], [ %.29, %B78 ], [ -1, %B214 ], [ %"$phi192.0.2.0.i", %B136.3.i ], [ -1, %B94 ], [ -1, %B46.i18.i ], [ -1, %B46.i10.i ], [ -1, %B46.i2.i ], [ -1, %B46.i.i ]
  store i64 %"$phi192.0.2.0.sink.i.sink", ptr %retptr, align 8
  ret i32 0

B20:
  %.27 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %.28 = load i8, ptr %.27, align 1
  %.29 = zext i8 %.28 to i64
  %0 = zext i8 %.28 to i32
  switch i32 %0, label %B214 [
    i32 34, label %B78
    i32 92, label %B78
    i32 47, label %B78
    i32 117, label %B94
    i32 110, label %common.ret
    i32 116, label %B162
    i32 114, label %B178
    i32 98, label %B194
    i32 102, label %B216
  ]

B78:
  br label %common.ret

B94:
  %.61 = add nsw i64 %arg.at, 1
  %.12.i = sub nsw i64 %arg.end, %.61
  %.13.i = icmp slt i64 %.12.i, 4
  br i1 %.13.i, label %common.ret, label %B26.endif.endif.i

B136.i:
  %storemerge.i2354.i = phi i64 [ %.55.i21.i, %B46.i18.i ], [ %11, %B26.endif.endif.i ]
  %sunkaddr = getelementptr i8, ptr %arg.data, i64 %.61
  %sunkaddr8 = getelementptr i8, ptr %sunkaddr, i64 1
  %.148.1.i = load i8, ptr %sunkaddr8, align 1
  %.149.1.i = zext i8 %.148.1.i to i64
  %1 = add nsw i64 %.149.1.i, -48
  %or.cond.i.i = icmp ult i64 %1, 10
  br i1 %or.cond.i.i, label %B136.1.i, label %B46.i.i

B46.i.i:
  %.30.i.i = or i64 %.149.1.i, 32
  %.55.i.i = add nsw i64 %.30.i.i, -87
  %2 = add nsw i64 %.30.i.i, -103
  %or.cond55.i = icmp ult i64 %2, -6
  br i1 %or.cond55.i, label %common.ret, label %B136.1.i

B136.1.i:
  %storemerge.i33.i = phi i64 [ %.55.i.i, %B46.i.i ], [ %1, %B136.i ]
  %sunkaddr10 = getelementptr i8, ptr %arg.data, i64 %.61
  %sunkaddr12 = getelementptr i8, ptr %sunkaddr10, i64 2
  %.148.2.i = load i8, ptr %sunkaddr12, align 1
  %.149.2.i = zext i8 %.148.2.i to i64
  %3 = add nsw i64 %.149.2.i, -48
  %or.cond.i1.i = icmp ult i64 %3, 10
  br i1 %or.cond.i1.i, label %B136.2.i, label %B46.i2.i

B46.i2.i:
  %.30.i3.i = or i64 %.149.2.i, 32
  %.55.i5.i = add nsw i64 %.30.i3.i, -87
  %4 = add nsw i64 %.30.i3.i, -103
  %or.cond56.i = icmp ult i64 %4, -6
  br i1 %or.cond56.i, label %common.ret, label %B136.2.i

B136.2.i:
  %storemerge.i740.i = phi i64 [ %.55.i5.i, %B46.i2.i ], [ %3, %B136.1.i ]
  %5 = shl nuw nsw i64 %storemerge.i2354.i, 8
  %6 = shl nuw nsw i64 %storemerge.i33.i, 4
  %.194.2.i = add nuw nsw i64 %6, %5
  %.196.2.i = add nuw nsw i64 %.194.2.i, %storemerge.i740.i
  %sunkaddr13 = getelementptr i8, ptr %arg.data, i64 %.61
  %sunkaddr14 = getelementptr i8, ptr %sunkaddr13, i64 3
  %.148.3.i = load i8, ptr %sunkaddr14, align 1
  %.149.3.i = zext i8 %.148.3.i to i64
  %7 = add nsw i64 %.149.3.i, -48
  %or.cond.i9.i = icmp ult i64 %7, 10
  br i1 %or.cond.i9.i, label %B136.3.i, label %B46.i10.i

B46.i10.i:
  %.30.i11.i = or i64 %.149.3.i, 32
  %.55.i13.i = add nsw i64 %.30.i11.i, -87
  %8 = add nsw i64 %.30.i11.i, -103
  %or.cond57.i = icmp ult i64 %8, -6
  br i1 %or.cond57.i, label %common.ret, label %B136.3.i

B136.3.i:
  %storemerge.i1547.i = phi i64 [ %.55.i13.i, %B46.i10.i ], [ %7, %B136.2.i ]
  %.194.3.i = shl nuw nsw i64 %.196.2.i, 4
  %.196.3.i = add nuw nsw i64 %storemerge.i1547.i, %.194.3.i
  %9 = and i64 %.196.3.i, -2048
  %or.cond.i = icmp eq i64 %9, 55296
  %"$phi192.0.2.0.i" = select i1 %or.cond.i, i64 -1, i64 %.196.3.i
  br label %common.ret

B26.endif.endif.i:
  %10 = getelementptr i8, ptr %arg.data, i64 %.61
  %.148.i = load i8, ptr %10, align 1
  %.149.i = zext i8 %.148.i to i64
  %11 = add nsw i64 %.149.i, -48
  %or.cond.i17.i = icmp ult i64 %11, 10
  br i1 %or.cond.i17.i, label %B136.i, label %B46.i18.i

B46.i18.i:
  %.30.i19.i = or i64 %.149.i, 32
  %.55.i21.i = add nsw i64 %.30.i19.i, -87
  %12 = add nsw i64 %.30.i19.i, -103
  %or.cond58.i = icmp ult i64 %12, -6
  br i1 %or.cond58.i, label %common.ret, label %B136.i

B162:
  br label %common.ret

B178:
  br label %common.ret

B194:
  br label %common.ret

B214:
  br label %common.ret

B216:
  br label %common.ret
}

define internal i32 @compiled_member(ptr %retptr, ptr %excinfo, ptr %arg.data, i64 %arg.at, i64 %arg.end, ptr %arg.plan, ptr %arg.names, i64 %arg.fields, i64 %arg.expected, ptr %arg.places) {
B0:
  %.84 = alloca [2 x i64], align 8
  %excinfo.1 = alloca ptr, align 8
  store ptr null, ptr %excinfo.1, align 8
  %.30.not = icmp slt i64 %arg.at, %arg.end
  br i1 %.30.not, label %B16, label %B40

B16:
  %.34 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %.35 = load i8, ptr %.34, align 1
  %.37.not = icmp eq i8 %.35, 34
  br i1 %.37.not, label %B44, label %B40

common.ret:
  %common.ret.op = phi i32 [ 0, %B40 ], [ 0, %B170 ], [ 0, %B244 ], [ 0, %B248.endif ], [ %.88, %B44.if.if ]
  ret i32 %common.ret.op

B40:
  tail call void @llvm.memset.p0.i64(ptr align 8 dereferenceable(16) %retptr, i8 -1, i64 16, i1 false)
  br label %common.ret

B44:
  %.70 = add nsw i64 %arg.at, 1
  call void @llvm.memset.p0.i64(ptr align 8 dereferenceable(16) %.84, i8 0, i64 16, i1 false)
  %.88 = call i32 @compiled_known(ptr %.84, ptr %excinfo.1, ptr %arg.data, i64 %.70, i64 %arg.end, ptr %arg.plan, ptr %arg.names, i64 %arg.fields, i64 %arg.expected)
  %.98.fca.0.load = load i64, ptr %.84, align 8
  %sunkaddr = getelementptr i8, ptr %.84, i64 8
  %.98.fca.1.load = load i64, ptr %sunkaddr, align 8
  %cond = icmp eq i32 %.88, 0
  br i1 %cond, label %B44.endif, label %B44.if.if

B114:
  %.136 = icmp slt i64 %.98.fca.0.load, 0
  br i1 %.136, label %B126, label %B174

B126:
  %.140 = add nsw i64 %.98.fca.1.load, -1
  %.21.i = load i64, ptr %arg.places, align 8
  %.26.i = icmp eq i64 %.21.i, 200
  br i1 %.26.i, label %B170, label %B46.endif.i

B80.i:
  %.134106108.i = phi i64 [ 0, %B80.lr.ph.i ], [ %.141.i, %B344.i ]
  %.141.i = add nuw nsw i64 %.134106108.i, 1
  %.idx.i = shl i64 %.134106108.i, 4
  %0 = getelementptr i8, ptr %arg.places, i64 %.idx.i
  %.169.i = getelementptr i8, ptr %0, i64 8
  %.170.i = load i64, ptr %.169.i, align 8
  %.175.i = getelementptr i8, ptr %0, i64 16
  %.176.i = load i64, ptr %.175.i, align 8
  %.186.i = sub nsw i64 %.176.i, %.170.i
  %.190.i = icmp eq i64 %.186.i, %.189.i
  br i1 %.190.i, label %B174.i, label %B344.i

B174.i:
  %.203.i = icmp sgt i64 %.176.i, %.170.i
  br i1 %.203.i, label %B196.i, label %B320.i

B196.i:
  %.216.i = getelementptr i8, ptr %arg.data, i64 %.170.i
  %.217.i = load i8, ptr %.216.i, align 1
  %sunkaddr11 = getelementptr i8, ptr %arg.data, i64 %.70
  %.225.i = load i8, ptr %sunkaddr11, align 1
  %.226.i = icmp eq i8 %.217.i, %.225.i
  br i1 %.226.i, label %B244.preheader.i, label %B320.i

B244.preheader.i:
  %1 = xor i64 %.170.i, -1
  %2 = add i64 %.176.i, %1
  %scevgep1.i = getelementptr i8, ptr %scevgep.i, i64 %.170.i
  br label %B244.i

B244.i:
  %more.2.3.i = phi i64 [ %.232.i, %B272.i ], [ 0, %B244.preheader.i ]
  %exitcond.not.i = icmp eq i64 %2, %more.2.3.i
  br i1 %exitcond.not.i, label %B320.i, label %B272.i

B272.i:
  %.232.i = add nuw i64 %more.2.3.i, 1
  %scevgep2.i = getelementptr i8, ptr %scevgep1.i, i64 %more.2.3.i
  %.258.i = load i8, ptr %scevgep2.i, align 1
  %sunkaddr12 = getelementptr i8, ptr %.34, i64 %more.2.3.i
  %sunkaddr13 = getelementptr i8, ptr %sunkaddr12, i64 2
  %.266.i = load i8, ptr %sunkaddr13, align 1
  %.267.i = icmp eq i8 %.258.i, %.266.i
  br i1 %.267.i, label %B244.i, label %B320.i

B320.i:
  %more.3.2.i = phi i64 [ 0, %B196.i ], [ 0, %B174.i ], [ %.189.i, %B244.i ], [ %.232.i, %B272.i ]
  %.282.i = add nsw i64 %more.3.2.i, %.170.i
  %.288.i = icmp eq i64 %.282.i, %.176.i
  br i1 %.288.i, label %B170, label %B344.i

B344.i:
  %exitcond111.not.i = icmp eq i64 %.141.i, %.21.i
  br i1 %exitcond111.not.i, label %B126.endif, label %B80.i

B46.endif.i:
  %.128107.not.i = icmp slt i64 %.21.i, 1
  br i1 %.128107.not.i, label %B126.endif, label %B80.lr.ph.i

B80.lr.ph.i:
  %.189.i = sub nsw i64 %.140, %.70
  %scevgep.i = getelementptr i8, ptr %arg.data, i64 1
  br label %B80.i

B170:
  tail call void @llvm.memset.p0.i64(ptr align 8 dereferenceable(16) %retptr, i8 -1, i64 16, i1 false)
  br label %common.ret

B174:
  %.19.i = icmp slt i64 %.98.fca.1.load, %arg.end
  br i1 %.19.i, label %B16.i, label %B174.endif

B16.i:
  %.29.i = getelementptr i8, ptr %arg.data, i64 %.98.fca.1.load
  %.30.i = load i8, ptr %.29.i, align 1
  %3 = zext i8 %.30.i to i32
  switch i32 %3, label %B174.endif [
    i32 32, label %B112.preheader.i
    i32 10, label %B112.preheader.i
    i32 13, label %B112.preheader.i
    i32 9, label %B112.preheader.i
  ]

B112.preheader.i:
  %.7242.i = add nuw nsw i64 %.98.fca.1.load, 1
  %.8343.i = icmp slt i64 %.7242.i, %arg.end
  br i1 %.8343.i, label %B134.i.preheader, label %B174.endif

B134.i.preheader:
  br label %B134.i

B134.i:
  %.7244.i = phi i64 [ %.72.i, %B231.i ], [ %.7242.i, %B134.i.preheader ]
  %.89.i = getelementptr i8, ptr %arg.data, i64 %.7244.i
  %.90.i = load i8, ptr %.89.i, align 1
  %4 = zext i8 %.90.i to i32
  switch i32 %4, label %B174.endif.loopexit [
    i32 32, label %B231.i
    i32 10, label %B231.i
    i32 13, label %B231.i
    i32 9, label %B231.i
  ]

B231.i:
  %.72.i = add i64 %.7244.i, 1
  %exitcond.not.i1 = icmp eq i64 %arg.end, %.72.i
  br i1 %exitcond.not.i1, label %B244, label %B134.i

B220:
  %.251 = getelementptr i8, ptr %arg.data, i64 %at.3.0.i
  %.252 = load i8, ptr %.251, align 1
  %.254.not = icmp eq i8 %.252, 58
  br i1 %.254.not, label %B248, label %B244

B244:
  tail call void @llvm.memset.p0.i64(ptr align 8 dereferenceable(16) %retptr, i8 -1, i64 16, i1 false)
  br label %common.ret

B248:
  %.280 = add nsw i64 %at.3.0.i, 1
  %.19.i2 = icmp slt i64 %.280, %arg.end
  br i1 %.19.i2, label %B16.i4, label %B248.endif

B16.i4:
  %.29.i5 = getelementptr i8, ptr %arg.data, i64 %.280
  %.30.i6 = load i8, ptr %.29.i5, align 1
  %5 = zext i8 %.30.i6 to i32
  switch i32 %5, label %B248.endif [
    i32 32, label %B112.preheader.i7
    i32 10, label %B112.preheader.i7
    i32 13, label %B112.preheader.i7
    i32 9, label %B112.preheader.i7
  ]

B112.preheader.i7:
  %.7242.i8 = add nsw i64 %at.3.0.i, 2
  %.8343.i9 = icmp slt i64 %.7242.i8, %arg.end
  br i1 %.8343.i9, label %B134.i10.preheader, label %B248.endif

B134.i10.preheader:
  br label %B134.i10

B134.i10:
  %.7244.i11 = phi i64 [ %.72.i15, %B231.i14 ], [ %.7242.i8, %B134.i10.preheader ]
  %.89.i12 = getelementptr i8, ptr %arg.data, i64 %.7244.i11
  %.90.i13 = load i8, ptr %.89.i12, align 1
  %6 = zext i8 %.90.i13 to i32
  switch i32 %6, label %B134.i10.B248.endif.loopexit_crit_edge [
    i32 32, label %B231.i14
    i32 10, label %B231.i14
    i32 13, label %B231.i14
    i32 9, label %B231.i14
  ]

B231.i14:
  %.72.i15 = add i64 %.7244.i11, 1
  %exitcond.not.i16 = icmp eq i64 %arg.end, %.72.i15
  br i1 %exitcond.not.i16, label %B248.endif, label %B134.i10

B44.endif:
  %.133 = icmp slt i64 %.98.fca.1.load, 0
  br i1 %.133, label %B170, label %B114

B44.if.if:
  %.96 = icmp sgt i32 %.88, 0
  %.89 = load ptr, ptr %excinfo.1, align 8
  %.97 = select i1 %.96, ptr %.89, ptr undef
  store ptr %.97, ptr %excinfo, align 8
  br label %common.ret

B126.endif:
  %.idx112.i = shl i64 %.21.i, 4
  %7 = getelementptr i8, ptr %arg.places, i64 %.idx112.i
  %.323.i = getelementptr i8, ptr %7, i64 8
  store i64 %.70, ptr %.323.i, align 8
  %.332.i = getelementptr i8, ptr %7, i64 16
  store i64 %.140, ptr %.332.i, align 8
  %.337.i = add nsw i64 %.21.i, 1
  store i64 %.337.i, ptr %arg.places, align 8
  br label %B174

B174.endif.loopexit:
  br label %B174.endif

B174.endif:
  %at.3.0.i = phi i64 [ %.98.fca.1.load, %B16.i ], [ %.98.fca.1.load, %B174 ], [ %.7242.i, %B112.preheader.i ], [ %.7244.i, %B174.endif.loopexit ]
  %.247.not = icmp slt i64 %at.3.0.i, %arg.end
  br i1 %.247.not, label %B220, label %B244

B134.i10.B248.endif.loopexit_crit_edge:
  br label %B248.endif

B248.endif:
  %at.3.0.i3 = phi i64 [ %.280, %B16.i4 ], [ %.280, %B248 ], [ %.7242.i8, %B112.preheader.i7 ], [ %.7244.i11, %B134.i10.B248.endif.loopexit_crit_edge ], [ %arg.end, %B231.i14 ]
  %.316 = icmp slt i64 %at.3.0.i3, %arg.end
  %"$phi308.1.2.0" = select i1 %.316, i64 %at.3.0.i3, i64 -1
  store i64 %.98.fca.0.load, ptr %retptr, align 8
  %retptr.repack55 = getelementptr i8, ptr %retptr, i64 8
  store i64 %"$phi308.1.2.0", ptr %retptr.repack55, align 8
  br label %common.ret
}

define internal i32 @compiled_moment(ptr %retptr, ptr %excinfo, ptr %arg.data, i64 %arg.at, i64 %arg.end, i64 %arg.zoned) {
B0:
  %.58 = alloca i64, align 8
  %excinfo.1 = alloca ptr, align 8
  %.94 = alloca [2 x i64], align 8
  %excinfo.2 = alloca ptr, align 8
  %.18 = sub nsw i64 %arg.end, %arg.at
  %.19 = icmp slt i64 %.18, 20
  br i1 %.19, label %B82, label %B22

B22:
  %0 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %.24 = getelementptr i8, ptr %0, i64 10
  %.25 = load i8, ptr %.24, align 1
  %1 = zext i8 %.25 to i32
  switch i32 %1, label %B82 [
    i32 84, label %B86
    i32 32, label %B86
  ]

common.ret:
  %common.ret.op = phi i32 [ 0, %B82 ], [ 0, %B198 ], [ 0, %B274 ], [ 0, %B302 ], [ 0, %B306 ], [ %.62, %B86.if.if ], [ %.98, %B86.endif.if.if ]
  ret i32 %common.ret.op

B82:
  store i64 0, ptr %retptr, align 8
  %retptr.repack70 = getelementptr i8, ptr %retptr, i64 8
  store i64 -1, ptr %retptr.repack70, align 8
  br label %common.ret

B86:
  %.62 = call i32 @compiled_day(ptr %.58, ptr %excinfo.1, ptr %arg.data, i64 %arg.at)
  %.72 = load i64, ptr %.58, align 8
  %cond = icmp eq i32 %.62, 0
  br i1 %cond, label %B86.endif, label %B86.if.if

B198:
  store i64 0, ptr %retptr, align 8
  %retptr.repack69 = getelementptr i8, ptr %retptr, i64 8
  store i64 -1, ptr %retptr.repack69, align 8
  br label %common.ret

B202:
  %.168.not = icmp eq i64 %arg.zoned, 0
  br i1 %.168.not, label %B278, label %B210

B210:
  %.15.i = getelementptr i8, ptr %arg.data, i64 %.108.fca.1.load
  %.16.i = load i8, ptr %.15.i, align 1
  %2 = zext i8 %.16.i to i32
  switch i32 %2, label %B274 [
    i32 90, label %B210.endif
    i32 43, label %B90.i
    i32 45, label %B90.i
  ]

B90.i:
  %.54.i = sub nsw i64 %arg.end, %.108.fca.1.load
  %.57.i = icmp slt i64 %.54.i, 7
  br i1 %.57.i, label %B274, label %B108.i

B108.i:
  %sunkaddr = getelementptr i8, ptr %arg.data, i64 %.108.fca.1.load
  %sunkaddr1 = getelementptr i8, ptr %sunkaddr, i64 3
  %.63.i = load i8, ptr %sunkaddr1, align 1
  %.65.not.i = icmp eq i8 %.63.i, 58
  br i1 %.65.not.i, label %B142.i, label %B274

B142.i:
  %sunkaddr2 = getelementptr i8, ptr %arg.data, i64 %.108.fca.1.load
  %sunkaddr3 = getelementptr i8, ptr %sunkaddr2, i64 1
  %.137.i.i = load i8, ptr %sunkaddr3, align 1
  %.138.i.i = zext i8 %.137.i.i to i64
  %3 = add i8 %.137.i.i, -58
  %or.cond.i.i = icmp ult i8 %3, -10
  br i1 %or.cond.i.i, label %B142.endif.i, label %B112.i.i

B112.i.i:
  %sunkaddr4 = getelementptr i8, ptr %arg.data, i64 %.108.fca.1.load
  %sunkaddr5 = getelementptr i8, ptr %sunkaddr4, i64 2
  %.137.1.i.i = load i8, ptr %sunkaddr5, align 1
  %.138.1.i.i = zext i8 %.137.1.i.i to i64
  %4 = add i8 %.137.1.i.i, -58
  %or.cond.1.i.i = icmp ult i8 %4, -10
  br i1 %or.cond.1.i.i, label %B142.endif.i, label %B112.1.i.i

B112.1.i.i:
  %5 = mul nuw nsw i64 %.138.i.i, 10
  %.164.1.i.i = add nsw i64 %5, -528
  %.167.1.i.i = add nsw i64 %.164.1.i.i, %.138.1.i.i
  br label %B142.endif.i

B274.i:
  %.178.i = mul nuw nsw i64 %storemerge.i.i, 60
  %.182.i = add nuw nsw i64 %.167.1.i11.i, %.178.i
  %.195.i = icmp eq i8 %.16.i, 45
  %.198.i = sub nsw i64 0, %.182.i
  %spec.select.i = select i1 %.195.i, i64 %.198.i, i64 %.182.i
  br label %B210.endif

B142.endif.i:
  %storemerge.i.i = phi i64 [ -1000000, %B142.i ], [ %.167.1.i.i, %B112.1.i.i ], [ -1000000, %B112.i.i ]
  %sunkaddr6 = getelementptr i8, ptr %arg.data, i64 %.108.fca.1.load
  %sunkaddr7 = getelementptr i8, ptr %sunkaddr6, i64 4
  %.137.i1.i = load i8, ptr %sunkaddr7, align 1
  %.138.i2.i = zext i8 %.137.i1.i to i64
  %6 = add i8 %.137.i1.i, -58
  %or.cond.i3.i = icmp ult i8 %6, -10
  br i1 %or.cond.i3.i, label %B274, label %B112.i4.i

B112.i4.i:
  %sunkaddr8 = getelementptr i8, ptr %arg.data, i64 %.108.fca.1.load
  %sunkaddr9 = getelementptr i8, ptr %sunkaddr8, i64 5
  %.137.1.i6.i = load i8, ptr %sunkaddr9, align 1
  %.138.1.i9.i = zext i8 %.137.1.i6.i to i64
  %7 = add i8 %.137.1.i6.i, -58
  %or.cond.1.i7.i = icmp ult i8 %7, -10
  br i1 %or.cond.1.i7.i, label %B274, label %B142.endif.endif.i

B142.endif.endif.i:
  %8 = mul nuw nsw i64 %.138.i2.i, 10
  %.164.1.i10.i = add nsw i64 %8, -528
  %.167.1.i11.i = add nsw i64 %.164.1.i10.i, %.138.1.i9.i
  %or.cond.i = icmp ugt i64 %storemerge.i.i, 18
  %.157.i = icmp ugt i64 %.167.1.i11.i, 59
  %or.cond36.i = select i1 %or.cond.i, i1 true, i1 %.157.i
  br i1 %or.cond36.i, label %B274, label %B274.i

B274:
  store i64 0, ptr %retptr, align 8
  %retptr.repack68 = getelementptr i8, ptr %retptr, i64 8
  store i64 -1, ptr %retptr.repack68, align 8
  br label %common.ret

B278:
  %at.3.0 = phi i64 [ %.212.i, %B210.endif ], [ %.108.fca.1.load, %B202 ]
  %ahead.2.0 = phi i64 [ %spec.select.sink.i, %B210.endif ], [ 0, %B202 ]
  %.271 = getelementptr i8, ptr %arg.data, i64 %at.3.0
  %.272 = load i8, ptr %.271, align 1
  %.276.not = icmp eq i8 %.272, 34
  br i1 %.276.not, label %B306, label %B302

B302:
  store i64 0, ptr %retptr, align 8
  %retptr.repack67 = getelementptr i8, ptr %retptr, i64 8
  store i64 -1, ptr %retptr.repack67, align 8
  br label %common.ret

B306:
  %.297 = mul nsw i64 %.72, 86400000000
  %.301 = add nsw i64 %.108.fca.0.load, %.297
  %.305.neg = mul nsw i64 %ahead.2.0, -60000000
  %.308 = add i64 %.301, %.305.neg
  %.310 = add nuw nsw i64 %at.3.0, 1
  store i64 %.308, ptr %retptr, align 8
  %retptr.repack65 = getelementptr i8, ptr %retptr, i64 8
  store i64 %.310, ptr %retptr.repack65, align 8
  br label %common.ret

B86.endif:
  %.89 = add nsw i64 %arg.at, 11
  call void @llvm.memset.p0.i64(ptr align 8 dereferenceable(16) %.94, i8 0, i64 16, i1 false)
  %.98 = call i32 @compiled_clock(ptr %.94, ptr %excinfo.2, ptr %arg.data, i64 %.89, i64 %arg.end)
  %.108.fca.0.load = load i64, ptr %.94, align 8
  %sunkaddr16 = getelementptr i8, ptr %.94, i64 8
  %.108.fca.1.load = load i64, ptr %sunkaddr16, align 8
  %cond6 = icmp eq i32 %.98, 0
  br i1 %cond6, label %B86.endif.endif, label %B86.endif.if.if

B86.if.if:
  store ptr null, ptr %excinfo, align 8
  br label %common.ret

B86.endif.endif:
  %.133 = icmp eq i64 %.72, -1000000
  %.136 = icmp slt i64 %.108.fca.1.load, 0
  %or.cond = select i1 %.133, i1 true, i1 %.136
  br i1 %or.cond, label %B198, label %B202

B86.endif.if.if:
  store ptr null, ptr %excinfo, align 8
  br label %common.ret

B210.endif:
  %.sink = phi i64 [ 6, %B274.i ], [ 1, %B210 ]
  %spec.select.sink.i = phi i64 [ %spec.select.i, %B274.i ], [ 0, %B210 ]
  %.212.i = add nuw nsw i64 %.sink, %.108.fca.1.load
  %.233.not = icmp slt i64 %.212.i, %arg.end
  br i1 %.233.not, label %B278, label %B274
}

define internal i32 @compiled_number(ptr %retptr, ptr %excinfo, ptr %arg.data, i64 %arg.at, i64 %arg.end) {
B0:
  %.41 = icmp slt i64 %arg.at, %arg.end
  br i1 %.41, label %B64, label %B80

B64:
  %.48 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %.49 = load i8, ptr %.48, align 1
  %.51 = icmp eq i8 %.49, 45
  %.68 = zext i1 %.51 to i64
  %spec.select494 = add nsw i64 %arg.at, %.68
  br label %B80

B80:
  %"$phi64.0.2.0475" = phi i1 [ false, %B0 ], [ %.51, %B64 ]
  %at.8.0 = phi i64 [ %arg.at, %B0 ], [ %spec.select494, %B64 ]
  %.98 = icmp slt i64 %at.8.0, %arg.end
  br i1 %.98, label %B96, label %B408

B96:
  %.114 = getelementptr i8, ptr %arg.data, i64 %at.8.0
  %.115 = load i8, ptr %.114, align 1
  %0 = add i8 %.115, -48
  %or.cond = icmp ult i8 %0, 10
  %.174 = sub nsw i64 %at.8.0, %arg.at
  %.177 = icmp slt i64 %.174, 60
  %or.cond495 = select i1 %or.cond, i1 %.177, i1 false
  br i1 %or.cond495, label %B172.preheader, label %B408

B172.preheader:
  %1 = add nsw i64 %arg.end, -1
  %2 = sub i64 1, %arg.at
  %scevgep47 = getelementptr i8, ptr %arg.data, i64 1
  br label %B172

B172:
  %lsr.iv48 = phi ptr [ %scevgep49, %B278 ], [ %scevgep47, %B172.preheader ]
  %lsr.iv72 = phi i64 [ %lsr.iv.next73, %B278 ], [ %1, %B172.preheader ]
  %lsr.iv70 = phi i64 [ %lsr.iv.next71, %B278 ], [ 0, %B172.preheader ]
  %lsr.iv3 = phi i64 [ %lsr.iv.next4, %B278 ], [ %2, %B172.preheader ]
  %.206 = phi i8 [ %.277, %B278 ], [ %.115, %B172.preheader ]
  %form.6.1 = phi i64 [ %form.7.2, %B278 ], [ 0, %B172.preheader ]
  %mantissa.3.1 = phi i64 [ %mantissa.4.2, %B278 ], [ 0, %B172.preheader ]
  %used.3.1 = phi i64 [ %used.4.2, %B278 ], [ 0, %B172.preheader ]
  %.191 = icmp slt i64 %used.3.1, 18
  br i1 %.191, label %B194, label %B246

B194:
  %.200 = mul nsw i64 %mantissa.3.1, 10
  %.207 = zext i8 %.206 to i64
  %.209 = add nsw i64 %.207, -48
  %.210 = add i64 %.209, %.200
  %.215 = add nsw i64 %used.3.1, 1
  br label %B256

B246:
  %.233 = or i64 %form.6.1, 2
  br label %B256

B256:
  %form.7.2 = phi i64 [ %form.6.1, %B194 ], [ %.233, %B246 ]
  %mantissa.4.2 = phi i64 [ %.210, %B194 ], [ %mantissa.3.1, %B246 ]
  %used.4.2 = phi i64 [ %.215, %B194 ], [ %used.3.1, %B246 ]
  %exitcond.not = icmp eq i64 %at.8.0, %lsr.iv72
  br i1 %exitcond.not, label %B354, label %B278

B278:
  %scevgep50 = getelementptr i8, ptr %lsr.iv48, i64 %at.8.0
  %.277 = load i8, ptr %scevgep50, align 1
  %3 = add i8 %.277, -48
  %or.cond496 = icmp ult i8 %3, 10
  %4 = add i64 %at.8.0, %lsr.iv3
  %.335 = icmp slt i64 %4, 60
  %or.cond497 = select i1 %or.cond496, i1 %.335, i1 false
  %lsr.iv.next4 = add i64 %lsr.iv3, 1
  %lsr.iv.next71 = add i64 %lsr.iv70, -1
  %lsr.iv.next73 = add i64 %lsr.iv72, -1
  %scevgep49 = getelementptr i8, ptr %lsr.iv48, i64 1
  br i1 %or.cond497, label %B172, label %B354.thread

B354.thread:
  %5 = sub i64 %at.8.0, %lsr.iv.next71
  %6 = add i64 %5, -1
  br label %B366

B354:
  %.368 = icmp eq i64 %arg.end, %at.8.0
  br i1 %.368, label %B408, label %B366

B366:
  %at.9.1.lcssa15 = phi i64 [ %6, %B354.thread ], [ %1, %B354 ]
  %.249.lcssa14 = phi i64 [ %5, %B354.thread ], [ %arg.end, %B354 ]
  %.375 = icmp eq i8 %.115, 48
  %.379 = sub nsw i64 %.249.lcssa14, %at.8.0
  %.382 = icmp sgt i64 %.379, 1
  %or.cond498 = select i1 %.375, i1 %.382, i1 false
  br i1 %or.cond498, label %B408, label %B412

common.ret:
  ret i32 0

B408:
  %retptr.repack527 = getelementptr i8, ptr %retptr, i64 24
  tail call void @llvm.memset.p0.i64(ptr align 8 dereferenceable(24) %retptr, i8 0, i64 24, i1 false)
  store i64 -1, ptr %retptr.repack527, align 8
  br label %common.ret

B412:
  %.442 = icmp slt i64 %.249.lcssa14, %arg.end
  br i1 %.442, label %B424, label %B768

B424:
  %.460 = getelementptr i8, ptr %arg.data, i64 %.249.lcssa14
  %.461 = load i8, ptr %.460, align 1
  %.463 = icmp eq i8 %.461, 46
  br i1 %.463, label %B448, label %B768

B448:
  %.478 = add nsw i64 %at.9.1.lcssa15, 2
  %.505 = icmp slt i64 %.478, %arg.end
  br i1 %.505, label %B484, label %B754

B484:
  %.518 = getelementptr i8, ptr %arg.data, i64 %.478
  %.519 = load i8, ptr %.518, align 1
  %7 = add i8 %.519, -48
  %or.cond499 = icmp ult i8 %7, 10
  %.572 = sub nsw i64 %.478, %arg.at
  %.575 = icmp slt i64 %.572, 60
  %or.cond500 = select i1 %or.cond499, i1 %.575, i1 false
  br i1 %or.cond500, label %B560.preheader, label %B754

B560.preheader:
  %.489 = or i64 %form.7.2, 1
  %8 = add i64 %at.9.1.lcssa15, 3
  %9 = sub i64 0, %arg.at
  br label %B560

B560:
  %lsr.iv = phi i64 [ %8, %B560.preheader ], [ %lsr.iv.next, %B666 ]
  %.602 = phi i8 [ %.519, %B560.preheader ], [ %.667, %B666 ]
  %form.9.1 = phi i64 [ %.489, %B560.preheader ], [ %form.10.2, %B666 ]
  %mantissa.5.1 = phi i64 [ %mantissa.4.2, %B560.preheader ], [ %mantissa.6.2, %B666 ]
  %used.5.1 = phi i64 [ %used.4.2, %B560.preheader ], [ %used.6.2, %B666 ]
  %.587 = icmp slt i64 %used.5.1, 18
  br i1 %.587, label %B582, label %B634

B582:
  %.596 = mul nsw i64 %mantissa.5.1, 10
  %.603 = zext i8 %.602 to i64
  %.605 = add nsw i64 %.603, -48
  %.606 = add i64 %.605, %.596
  %.611 = add nsw i64 %used.5.1, 1
  br label %B644

B634:
  %.629 = or i64 %form.9.1, 2
  br label %B644

B644:
  %form.10.2 = phi i64 [ %form.9.1, %B582 ], [ %.629, %B634 ]
  %mantissa.6.2 = phi i64 [ %.606, %B582 ], [ %mantissa.5.1, %B634 ]
  %used.6.2 = phi i64 [ %.611, %B582 ], [ %used.5.1, %B634 ]
  %exitcond528.not = icmp eq i64 %arg.end, %lsr.iv
  br i1 %exitcond528.not, label %B742, label %B666

B666:
  %scevgep = getelementptr i8, ptr %arg.data, i64 %lsr.iv
  %.667 = load i8, ptr %scevgep, align 1
  %10 = add i8 %.667, -48
  %or.cond501 = icmp ult i8 %10, 10
  %11 = add i64 %9, %lsr.iv
  %.719 = icmp slt i64 %11, 60
  %or.cond502 = select i1 %or.cond501, i1 %.719, i1 false
  %lsr.iv.next = add i64 %lsr.iv, 1
  br i1 %or.cond502, label %B560, label %B666.B742_crit_edge

B666.B742_crit_edge:
  %12 = add i64 %lsr.iv.next, -1
  br label %B742

B742:
  %.642.lcssa = phi i64 [ %12, %B666.B742_crit_edge ], [ %arg.end, %B644 ]
  %.752 = icmp eq i64 %.478, %.642.lcssa
  br i1 %.752, label %B754, label %B758

B754:
  %retptr.repack524 = getelementptr i8, ptr %retptr, i64 24
  tail call void @llvm.memset.p0.i64(ptr align 8 dereferenceable(24) %retptr, i8 0, i64 24, i1 false)
  store i64 -1, ptr %retptr.repack524, align 8
  br label %common.ret

B758:
  %.803 = sub nsw i64 %.478, %.642.lcssa
  br label %B768

B768:
  %at.13.0 = phi i64 [ %.642.lcssa, %B758 ], [ %.249.lcssa14, %B424 ], [ %.249.lcssa14, %B412 ]
  %form.11.0 = phi i64 [ %form.10.2, %B758 ], [ %form.7.2, %B424 ], [ %form.7.2, %B412 ]
  %mantissa.8.0 = phi i64 [ %mantissa.6.2, %B758 ], [ %mantissa.4.2, %B424 ], [ %mantissa.4.2, %B412 ]
  %scale.3.0 = phi i64 [ %.803, %B758 ], [ 0, %B424 ], [ 0, %B412 ]
  %.835 = icmp slt i64 %at.13.0, %arg.end
  br i1 %.835, label %B780, label %B1186

B780:
  %.848 = getelementptr i8, ptr %arg.data, i64 %at.13.0
  %.849 = load i8, ptr %.848, align 1
  %13 = and i8 %.849, -33
  %.852 = icmp eq i8 %13, 69
  br i1 %.852, label %B810, label %B1186

B810:
  %.861 = add nsw i64 %at.13.0, 1
  %.868 = or i64 %form.11.0, 1
  %.876 = icmp slt i64 %.861, %arg.end
  br i1 %.876, label %B878, label %B936

B878:
  %.883 = getelementptr i8, ptr %arg.data, i64 %.861
  %.884 = load i8, ptr %.883, align 1
  %.886 = icmp eq i8 %.884, 45
  %14 = zext i8 %.884 to i32
  switch i32 %14, label %B936 [
    i32 45, label %B926
    i32 43, label %B926
  ]

B926:
  %.924 = add nsw i64 %at.13.0, 2
  br label %B936

B936:
  %"$phi864.0.2.0486" = phi i1 [ %.886, %B926 ], [ %.886, %B878 ], [ false, %B810 ]
  %at.14.0 = phi i64 [ %.924, %B926 ], [ %.861, %B878 ], [ %.861, %B810 ]
  %.949 = icmp slt i64 %at.14.0, %arg.end
  br i1 %.949, label %B956, label %B1162

B956:
  %.959 = getelementptr i8, ptr %arg.data, i64 %at.14.0
  %.960 = load i8, ptr %.959, align 1
  %.1011 = zext i8 %.960 to i64
  %15 = add i8 %.960, -48
  %or.cond503 = icmp ult i8 %15, 10
  br i1 %or.cond503, label %B1022, label %B1162

B1022:
  %.1014 = add nsw i64 %.1011, -48
  %exitcond529.not = icmp eq i64 %at.14.0, %1
  br i1 %exitcond529.not, label %B1150, label %B1084

B1084:
  %.1022 = add nsw i64 %at.14.0, 1
  %.1043 = getelementptr i8, ptr %arg.data, i64 %.1022
  %.1044 = load i8, ptr %.1043, align 1
  %.1011.1 = zext i8 %.1044 to i64
  %16 = add i8 %.1044, -48
  %or.cond504 = icmp ult i8 %16, 10
  br i1 %or.cond504, label %B1022.1, label %B1166

B1022.1:
  %.1004.1 = mul nuw nsw i64 %.1014, 10
  %.1013.1 = add nuw nsw i64 %.1004.1, %.1011.1
  %.1014.1 = add nsw i64 %.1013.1, -48
  %exitcond529.not.1 = icmp eq i64 %.1022, %1
  br i1 %exitcond529.not.1, label %B1150, label %B1084.1

B1084.1:
  %.1022.1 = add nsw i64 %at.14.0, 2
  %.1043.1 = getelementptr i8, ptr %arg.data, i64 %.1022.1
  %.1044.1 = load i8, ptr %.1043.1, align 1
  %.1011.2 = zext i8 %.1044.1 to i64
  %17 = add i8 %.1044.1, -48
  %or.cond504.1 = icmp ult i8 %17, 10
  br i1 %or.cond504.1, label %B1022.2, label %B1166

B1022.2:
  %.1004.2 = mul nuw nsw i64 %.1014.1, 10
  %.1013.2 = add nuw nsw i64 %.1004.2, %.1011.2
  %.1014.2 = add nsw i64 %.1013.2, -48
  %exitcond529.not.2 = icmp eq i64 %.1022.1, %1
  br i1 %exitcond529.not.2, label %B1150, label %B1084.2

B1084.2:
  %.1022.2 = add nsw i64 %at.14.0, 3
  %.1043.2 = getelementptr i8, ptr %arg.data, i64 %.1022.2
  %.1044.2 = load i8, ptr %.1043.2, align 1
  %.1011.3 = zext i8 %.1044.2 to i64
  %18 = add i8 %.1044.2, -48
  %or.cond504.2 = icmp ult i8 %18, 10
  br i1 %or.cond504.2, label %B1022.3, label %B1166

B1022.3:
  %.1004.3 = mul nuw nsw i64 %.1014.2, 10
  %.1013.3 = add nuw nsw i64 %.1004.3, %.1011.3
  %.1014.3 = add nsw i64 %.1013.3, -48
  %exitcond529.not.3 = icmp eq i64 %.1022.2, %1
  %.1022.3 = add nsw i64 %at.14.0, 4
  %spec.select = select i1 %exitcond529.not.3, i64 %arg.end, i64 %.1022.3
  br label %B1150

B1150:
  %.1013.lcssa = phi i64 [ %.1013.2, %B1022.2 ], [ %.1011, %B1022 ], [ %.1013.1, %B1022.1 ], [ %.1013.3, %B1022.3 ]
  %.1014.lcssa = phi i64 [ %.1014.2, %B1022.2 ], [ %.1014, %B1022 ], [ %.1014.1, %B1022.1 ], [ %.1014.3, %B1022.3 ]
  %.1022.lcssa = phi i64 [ %arg.end, %B1022.2 ], [ %arg.end, %B1022 ], [ %arg.end, %B1022.1 ], [ %spec.select, %B1022.3 ]
  %.1105 = icmp eq i64 %.1022.lcssa, %at.14.0
  br i1 %.1105, label %B1162, label %B1166

B1162:
  %retptr.repack521 = getelementptr i8, ptr %retptr, i64 24
  tail call void @llvm.memset.p0.i64(ptr align 8 dereferenceable(24) %retptr, i8 0, i64 24, i1 false)
  store i64 -1, ptr %retptr.repack521, align 8
  br label %common.ret

B1166:
  %.1022.lcssa22 = phi i64 [ %.1022.lcssa, %B1150 ], [ %.1022.2, %B1084.2 ], [ %.1022.1, %B1084.1 ], [ %.1022, %B1084 ]
  %.1014.lcssa21 = phi i64 [ %.1014.lcssa, %B1150 ], [ %.1014.2, %B1084.2 ], [ %.1014.1, %B1084.1 ], [ %.1014, %B1084 ]
  %.1013.lcssa20 = phi i64 [ %.1013.lcssa, %B1150 ], [ %.1013.2, %B1084.2 ], [ %.1013.1, %B1084.1 ], [ %.1011, %B1084 ]
  %.1154 = sub nsw i64 48, %.1013.lcssa20
  %spec.select506 = select i1 %"$phi864.0.2.0486", i64 %.1154, i64 %.1014.lcssa21
  %.1179 = add nsw i64 %spec.select506, %scale.3.0
  br label %B1186

B1186:
  %at.17.0 = phi i64 [ %.1022.lcssa22, %B1166 ], [ %at.13.0, %B780 ], [ %at.13.0, %B768 ]
  %form.13.0 = phi i64 [ %.868, %B1166 ], [ %form.11.0, %B780 ], [ %form.11.0, %B768 ]
  %scale.4.0 = phi i64 [ %.1179, %B1166 ], [ %scale.3.0, %B780 ], [ %scale.3.0, %B768 ]
  %.1199 = sub nsw i64 %at.17.0, %arg.at
  %.1202 = icmp sgt i64 %.1199, 59
  %19 = add i64 %scale.4.0, -201
  %20 = icmp ult i64 %19, -401
  %or.cond508 = select i1 %.1202, i1 true, i1 %20
  br i1 %or.cond508, label %B1260, label %B1264

B1260:
  %retptr.repack518 = getelementptr i8, ptr %retptr, i64 24
  tail call void @llvm.memset.p0.i64(ptr align 8 dereferenceable(24) %retptr, i8 0, i64 24, i1 false)
  store i64 -1, ptr %retptr.repack518, align 8
  br label %common.ret

B1264:
  %.1249 = icmp eq i64 %mantissa.8.0, 0
  %.1252 = or i64 %form.13.0, 4
  %.1265 = sub i64 0, %mantissa.8.0
  %21 = select i1 %"$phi64.0.2.0475", i1 %.1249, i1 false
  %form.14.0492 = select i1 %21, i64 %.1252, i64 %form.13.0
  %"$phi1302.0.2.0" = select i1 %"$phi64.0.2.0475", i64 %.1265, i64 %mantissa.8.0
  store i64 %"$phi1302.0.2.0", ptr %retptr, align 8
  %retptr.repack510 = getelementptr i8, ptr %retptr, i64 8
  store i64 %scale.4.0, ptr %retptr.repack510, align 8
  %retptr.repack512 = getelementptr i8, ptr %retptr, i64 16
  store i64 %form.14.0492, ptr %retptr.repack512, align 8
  %retptr.repack514 = getelementptr i8, ptr %retptr, i64 24
  store i64 %at.17.0, ptr %retptr.repack514, align 8
  br label %common.ret
}

define internal i32 @compiled_valued(ptr %retptr, ptr %excinfo, ptr %arg.data, i64 %arg.at, i64 %arg.end, i64 %arg.row, i64 %arg.rows, i64 %arg.field, i64 %arg.fields, ptr %arg.plan, ptr %arg.ints, ptr %arg.reals, ptr %arg.flags, ptr %arg.texts, i64 %arg.room, ptr %arg.valid, ptr %arg.hard, ptr %arg.used, ptr %arg.powers, ptr %arg.places) {
B0:
  %.35.i = alloca [4 x i64], align 8
  %excinfo.1.i = alloca ptr, align 8
  %.279 = alloca [2 x i64], align 8
  %excinfo.2 = alloca ptr, align 8
  store ptr null, ptr %excinfo.2, align 8
  %.367 = alloca [4 x i64], align 8
  %excinfo.3 = alloca ptr, align 8
  %.665 = alloca [2 x i64], align 8
  %excinfo.6 = alloca ptr, align 8
  store ptr null, ptr %excinfo.6, align 8
  %.730 = alloca i64, align 8
  %excinfo.7 = alloca ptr, align 8
  store ptr null, ptr %excinfo.7, align 8
  %.812 = alloca [2 x i64], align 8
  %excinfo.8 = alloca ptr, align 8
  store ptr null, ptr %excinfo.8, align 8
  %.897 = alloca [2 x i64], align 8
  %excinfo.9 = alloca ptr, align 8
  store ptr null, ptr %excinfo.9, align 8
  %.66.idx = shl i64 %arg.field, 6
  %.66 = getelementptr i8, ptr %arg.plan, i64 %.66.idx
  %.67 = load i64, ptr %.66, align 8
  %.71 = getelementptr i8, ptr %.66, i64 40
  %.72 = load i64, ptr %.71, align 8
  %.81 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %.82 = load i8, ptr %.81, align 1
  %0 = zext i8 %.82 to i32
  %.89 = icmp eq i8 %.82, 110
  br i1 %.89, label %B122, label %B192

B122:
  %sunkaddr = getelementptr i8, ptr %arg.plan, i64 %.66.idx
  %sunkaddr2 = getelementptr i8, ptr %sunkaddr, i64 24
  %.131 = load i64, ptr %sunkaddr2, align 8
  %.134.not = icmp eq i64 %.131, 0
  %.12.i.i = sub nsw i64 %arg.end, %arg.at
  %.13.i.i = icmp slt i64 %.12.i.i, 4
  %or.cond = select i1 %.134.not, i1 true, i1 %.13.i.i
  br i1 %or.cond, label %B190, label %B0.endif.i

B70.i:
  %.96.i = add nsw i64 %arg.at, 4
  br label %B190

B102.i:
  %.107.i = add nsw i64 %arg.at, 4
  %.109.i = icmp slt i64 %.107.i, %arg.end
  br i1 %.109.i, label %B120.i, label %B190

B120.i:
  %sunkaddr4 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr5 = getelementptr i8, ptr %sunkaddr4, i64 4
  %.117.i = load i8, ptr %sunkaddr5, align 1
  %.121.i = icmp eq i8 %.117.i, 101
  %.124.i = add nsw i64 %arg.at, 5
  %spec.select.i = select i1 %.121.i, i64 %.124.i, i64 -1
  br label %B190

B0.endif.i:
  %sunkaddr7 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %.24.i.i = load i32, ptr %sunkaddr7, align 1
  switch i32 %.24.i.i, label %B190 [
    i32 1819047278, label %B70.i
    i32 1702195828, label %B70.i
    i32 1936482662, label %B102.i
  ]

common.ret:
  %common.ret.op = phi i32 [ 0, %B190 ], [ 0, %B264 ], [ 0, %B390.endif ], [ 0, %B580 ], [ 0, %B896 ], [ %.901, %B1030.if.if ], [ 0, %B268.endif ], [ %.283, %B268.if.if ], [ %.371, %B390.if.if ], [ 0, %_ZN11json_kernel4realB44c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsBAK4JIagIAE8uint8_2axxxxx10float64_2a10float64_2a8int64_2a8int64_2ax.exit.thread ], [ %.39.i, %_ZN11json_kernel4realB44c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsBAK4JIagIAE8uint8_2axxxxx10float64_2a10float64_2a8int64_2a8int64_2ax.exit ], [ 0, %B602.endif ], [ 0, %B1030.endif ], [ 0, %B666.endif ], [ %.669, %B666.if.if ], [ 0, %B810.endif ], [ %.734, %B810.if.if ], [ 0, %B922.endif ], [ %.816, %B922.if.if ]
  ret i32 %common.ret.op

B190:
  %"$phi190.0.2.0" = phi i64 [ -1, %B122 ], [ %.96.i, %B70.i ], [ -1, %B102.i ], [ -1, %B0.endif.i ], [ %spec.select.i, %B120.i ]
  store i64 %"$phi190.0.2.0", ptr %retptr, align 8
  br label %common.ret

B192:
  %.192 = mul nsw i64 %arg.field, %arg.rows
  %1 = getelementptr i8, ptr %arg.valid, i64 %.192
  %.197 = getelementptr i8, ptr %1, i64 %arg.row
  store i8 1, ptr %.197, align 1
  %.203 = mul nsw i64 %.72, %arg.rows
  %.207 = add nsw i64 %.203, %arg.row
  switch i64 %.67, label %B884 [
    i64 0, label %B252
    i64 1, label %B390
    i64 2, label %B484
    i64 3, label %B556
    i64 7, label %B666
    i64 8, label %B810
  ]

B252:
  %2 = trunc i32 %0 to i8
  %.241.not = icmp eq i8 %2, 34
  br i1 %.241.not, label %B268, label %B264

B264:
  store i64 -1, ptr %retptr, align 8
  br label %common.ret

B268:
  %.263 = mul nsw i64 %.72, %arg.room
  %.268 = add nsw i64 %arg.at, 1
  %.273 = getelementptr i64, ptr %arg.used, i64 %.72
  %.274 = load i64, ptr %.273, align 8
  %.275 = add nsw i64 %.274, %.263
  call void @llvm.memset.p0.i64(ptr align 8 dereferenceable(16) %.279, i8 0, i64 16, i1 false)
  %.283 = call i32 @compiled_text1(ptr %.279, ptr %excinfo.2, ptr %arg.data, i64 %.268, i64 %arg.end, ptr %arg.texts, i64 %.275, i64 1)
  %cond25 = icmp eq i32 %.283, 0
  br i1 %cond25, label %B268.endif, label %B268.if.if

B390:
  call void @llvm.memset.p0.i64(ptr align 8 dereferenceable(32) %.367, i8 0, i64 32, i1 false)
  %.371 = call i32 @compiled_number(ptr %.367, ptr %excinfo.3, ptr %arg.data, i64 %arg.at, i64 %arg.end)
  switch i32 %.371, label %B390.if.if [
    i32 -2, label %B390.endif
    i32 0, label %B390.endif
  ]

B484:
  call void @llvm.lifetime.start.p0(ptr %.35.i)
  call void @llvm.lifetime.start.p0(ptr %excinfo.1.i)
  %.fca.1.gep.i = getelementptr i8, ptr %.35.i, i64 8
  %.fca.2.gep.i = getelementptr i8, ptr %.35.i, i64 16
  %.fca.3.gep.i = getelementptr i8, ptr %.35.i, i64 24
  call void @llvm.memset.p0.i64(ptr align 8 dereferenceable(32) %.35.i, i8 0, i64 32, i1 false)
  %.39.i = call i32 @compiled_number(ptr %.35.i, ptr %excinfo.1.i, ptr %arg.data, i64 %arg.at, i64 %arg.end)
  %.49.fca.0.load.i = load i64, ptr %.35.i, align 8
  %.49.fca.1.load.i = load i64, ptr %.fca.1.gep.i, align 8
  %.49.fca.2.load.i = load i64, ptr %.fca.2.gep.i, align 8
  %.49.fca.3.load.i = load i64, ptr %.fca.3.gep.i, align 8
  switch i32 %.39.i, label %_ZN11json_kernel4realB44c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsBAK4JIagIAE8uint8_2axxxxx10float64_2a10float64_2a8int64_2a8int64_2ax.exit [
    i32 -2, label %B0.endif.i1
    i32 0, label %B0.endif.i1
  ]

B86.i:
  switch i64 %.49.fca.2.load.i, label %B374.i [
    i64 0, label %B98.i
    i64 1, label %B148.i
  ]

B98.i:
  %.149.i = sitofp i64 %.49.fca.0.load.i to double
  br label %B556.i

B148.i:
  %3 = add i64 %.49.fca.0.load.i, 9007199254740992
  %or.cond73.i = icmp ult i64 %3, 18014398509481985
  %4 = add i64 %.49.fca.1.load.i, 22
  %5 = icmp ult i64 %4, 45
  %or.cond75.i = select i1 %or.cond73.i, i1 %5, i1 false
  br i1 %or.cond75.i, label %B256.i, label %B374.i

B256.i:
  %.225.i = icmp slt i64 %.49.fca.1.load.i, 0
  %.228.i = sitofp i64 %.49.fca.0.load.i to double
  br i1 %.225.i, label %B268.i, label %B318.i

B268.i:
  %.232.i = sub nsw i64 0, %.49.fca.1.load.i
  %.236.i = getelementptr double, ptr %arg.powers, i64 %.232.i
  %.237.i = load double, ptr %.236.i, align 8
  %.243.i = fdiv double %.228.i, %.237.i
  br label %B556.i

B318.i:
  %.254.i = getelementptr double, ptr %arg.powers, i64 %.49.fca.1.load.i
  %.255.i = load double, ptr %.254.i, align 8
  %.260.i = fmul double %.255.i, %.228.i
  br label %B556.i

B374.i:
  %.284.i = getelementptr i64, ptr %arg.used, i64 %arg.fields
  %.285.i = load i64, ptr %.284.i, align 8
  %.290.idx.i = shl i64 %.285.i, 5
  %.290.i = getelementptr i8, ptr %arg.hard, i64 %.290.idx.i
  store i64 %arg.row, ptr %.290.i, align 8
  %.297.i = getelementptr i8, ptr %.290.i, i64 8
  store i64 %arg.field, ptr %.297.i, align 8
  %.304.i = getelementptr i8, ptr %.290.i, i64 16
  store i64 %arg.at, ptr %.304.i, align 8
  %.311.i = getelementptr i8, ptr %.290.i, i64 24
  store i64 %.49.fca.3.load.i, ptr %.311.i, align 8
  %.318.i = load i64, ptr %.284.i, align 8
  %.319.i = add nsw i64 %.318.i, 1
  store i64 %.319.i, ptr %.284.i, align 8
  br label %B556.i

B556.i:
  %.sink.i2 = phi double [ 0.000000e+00, %B374.i ], [ %.149.i, %B98.i ], [ %.243.i, %B268.i ], [ %.260.i, %B318.i ]
  %.330.i = getelementptr double, ptr %arg.reals, i64 %.207
  store double %.sink.i2, ptr %.330.i, align 8
  br label %_ZN11json_kernel4realB44c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsBAK4JIagIAE8uint8_2axxxxx10float64_2a10float64_2a8int64_2a8int64_2ax.exit.thread

B0.endif.i1:
  %.90.i = icmp slt i64 %.49.fca.3.load.i, 0
  %.93.i = and i64 %.49.fca.2.load.i, 4
  %.94.i = icmp ne i64 %.93.i, 0
  %.97.i = icmp eq i64 %.49.fca.2.load.i, 2
  %6 = or i1 %.97.i, %.94.i
  %or.cond72.i = select i1 %.90.i, i1 true, i1 %6
  br i1 %or.cond72.i, label %_ZN11json_kernel4realB44c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsBAK4JIagIAE8uint8_2axxxxx10float64_2a10float64_2a8int64_2a8int64_2ax.exit.thread, label %B86.i

_ZN11json_kernel4realB44c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsBAK4JIagIAE8uint8_2axxxxx10float64_2a10float64_2a8int64_2a8int64_2ax.exit.thread:
  %.475.0.ph = phi i64 [ %.49.fca.3.load.i, %B556.i ], [ -1, %B0.endif.i1 ]
  call void @llvm.lifetime.end.p0(ptr %.35.i)
  call void @llvm.lifetime.end.p0(ptr %excinfo.1.i)
  store i64 %.475.0.ph, ptr %retptr, align 8
  br label %common.ret

_ZN11json_kernel4realB44c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsBAK4JIagIAE8uint8_2axxxxx10float64_2a10float64_2a8int64_2a8int64_2ax.exit:
  call void @llvm.lifetime.end.p0(ptr %.35.i)
  call void @llvm.lifetime.end.p0(ptr %excinfo.1.i)
  store ptr null, ptr %excinfo, align 8
  br label %common.ret

B556:
  switch i32 %0, label %B580 [
    i32 116, label %B602
    i32 102, label %B602.fold.split
  ]

B580:
  store i64 -1, ptr %retptr, align 8
  br label %common.ret

B602.fold.split:
  br label %B602

B602:
  %"$phi602.0.2.0" = phi i8 [ 1, %B556 ], [ 0, %B602.fold.split ]
  %.588 = getelementptr i8, ptr %arg.flags, i64 %.207
  store i8 %"$phi602.0.2.0", ptr %.588, align 1
  %.12.i.i3 = sub nsw i64 %arg.end, %arg.at
  %.13.i.i4 = icmp slt i64 %.12.i.i3, 4
  br i1 %.13.i.i4, label %B602.endif, label %B0.endif.i5

B70.i18:
  %.96.i19 = add nsw i64 %arg.at, 4
  br label %B602.endif

B102.i8:
  %.107.i9 = add nsw i64 %arg.at, 4
  %.109.i10 = icmp slt i64 %.107.i9, %arg.end
  br i1 %.109.i10, label %B120.i12, label %B602.endif

B120.i12:
  %sunkaddr8 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr10 = getelementptr i8, ptr %sunkaddr8, i64 4
  %.117.i14 = load i8, ptr %sunkaddr10, align 1
  %.121.i15 = icmp eq i8 %.117.i14, 101
  %.124.i16 = add nsw i64 %arg.at, 5
  %spec.select.i17 = select i1 %.121.i15, i64 %.124.i16, i64 -1
  br label %B602.endif

B0.endif.i5:
  %sunkaddr12 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %.24.i.i7 = load i32, ptr %sunkaddr12, align 1
  switch i32 %.24.i.i7, label %B602.endif [
    i32 1819047278, label %B70.i18
    i32 1702195828, label %B70.i18
    i32 1936482662, label %B102.i8
  ]

B666:
  %sunkaddr13 = getelementptr i8, ptr %arg.plan, i64 %.66.idx
  %sunkaddr14 = getelementptr i8, ptr %sunkaddr13, i64 48
  %.650 = load i64, ptr %sunkaddr14, align 8
  %sunkaddr15 = getelementptr i8, ptr %arg.plan, i64 %.66.idx
  %sunkaddr16 = getelementptr i8, ptr %sunkaddr15, i64 56
  %.658 = load i64, ptr %sunkaddr16, align 8
  call void @llvm.memset.p0.i64(ptr align 8 dereferenceable(16) %.665, i8 0, i64 16, i1 false)
  %.669 = call i32 @compiled_exact(ptr %.665, ptr %excinfo.6, ptr %arg.data, i64 %arg.at, i64 %arg.end, i64 %.650, i64 %.658)
  %cond27 = icmp eq i32 %.669, 0
  br i1 %cond27, label %B666.endif, label %B666.if.if

B810:
  store i64 0, ptr %.730, align 8
  %.734 = call i32 @compiled_skipped(ptr %.730, ptr %excinfo.7, ptr %arg.data, i64 %arg.at, i64 %arg.end, ptr %arg.texts, ptr %arg.places)
  %cond28 = icmp eq i32 %.734, 0
  br i1 %cond28, label %B810.endif, label %B810.if.if

B884:
  %7 = trunc i32 %0 to i8
  %.782.not = icmp eq i8 %7, 34
  br i1 %.782.not, label %B900, label %B896

B896:
  store i64 -1, ptr %retptr, align 8
  br label %common.ret

B900:
  %.801 = icmp eq i64 %.67, 6
  %.807 = add nsw i64 %arg.at, 1
  br i1 %.801, label %B922, label %B978

B922:
  call void @llvm.memset.p0.i64(ptr align 8 dereferenceable(16) %.812, i8 0, i64 16, i1 false)
  %.816 = call i32 @compiled_date(ptr %.812, ptr %excinfo.8, ptr %arg.data, i64 %.807, i64 %arg.end)
  %cond = icmp eq i32 %.816, 0
  br i1 %cond, label %B922.endif, label %B922.if.if

B978:
  %.864 = icmp eq i64 %.67, 4
  %spec.select = zext i1 %.864 to i64
  call void @llvm.memset.p0.i64(ptr align 8 dereferenceable(16) %.897, i8 0, i64 16, i1 false)
  %.901 = call i32 @compiled_moment(ptr %.897, ptr %excinfo.9, ptr %arg.data, i64 %.807, i64 %arg.end, i64 %spec.select)
  %cond24 = icmp eq i32 %.901, 0
  br i1 %cond24, label %B1030.endif, label %B1030.if.if

B268.endif:
  %sunkaddr40 = getelementptr i8, ptr %.279, i64 8
  %.293.fca.1.load = load i64, ptr %sunkaddr40, align 8
  %.293.fca.0.load = load i64, ptr %.279, align 8
  %.317 = sub nsw i64 %.293.fca.1.load, %.263
  %sunkaddr41 = shl i64 %.72, 3
  %sunkaddr42 = getelementptr i8, ptr %arg.used, i64 %sunkaddr41
  store i64 %.317, ptr %sunkaddr42, align 8
  store i64 %.293.fca.0.load, ptr %retptr, align 8
  br label %common.ret

B268.if.if:
  %.291 = icmp sgt i32 %.283, 0
  %.284 = load ptr, ptr %excinfo.2, align 8
  %.292 = select i1 %.291, ptr %.284, ptr undef
  store ptr %.292, ptr %excinfo, align 8
  br label %common.ret

B390.endif:
  %sunkaddr43 = getelementptr i8, ptr %.367, i64 24
  %.381.fca.3.load = load i64, ptr %sunkaddr43, align 8
  %sunkaddr44 = getelementptr i8, ptr %.367, i64 16
  %.381.fca.2.load = load i64, ptr %sunkaddr44, align 8
  %.381.fca.0.load = load i64, ptr %.367, align 8
  %.418 = getelementptr i64, ptr %arg.ints, i64 %.207
  store i64 %.381.fca.0.load, ptr %.418, align 8
  %.424 = and i64 %.381.fca.2.load, 3
  %.425.not = icmp eq i64 %.424, 0
  %"$phi460.0.2.0" = select i1 %.425.not, i64 %.381.fca.3.load, i64 -1
  store i64 %"$phi460.0.2.0", ptr %retptr, align 8
  br label %common.ret

B390.if.if:
  store ptr null, ptr %excinfo, align 8
  br label %common.ret

B602.endif:
  %.sink.i11 = phi i64 [ %.96.i19, %B70.i18 ], [ -1, %B102.i8 ], [ -1, %B0.endif.i5 ], [ -1, %B602 ], [ %spec.select.i17, %B120.i12 ]
  store i64 %.sink.i11, ptr %retptr, align 8
  br label %common.ret

B666.endif:
  %sunkaddr45 = getelementptr i8, ptr %.665, i64 8
  %.679.fca.1.load = load i64, ptr %sunkaddr45, align 8
  %.679.fca.0.load = load i64, ptr %.665, align 8
  %.705 = getelementptr i64, ptr %arg.ints, i64 %.207
  store i64 %.679.fca.0.load, ptr %.705, align 8
  store i64 %.679.fca.1.load, ptr %retptr, align 8
  br label %common.ret

B666.if.if:
  %.677 = icmp sgt i32 %.669, 0
  %.670 = load ptr, ptr %excinfo.6, align 8
  %.678 = select i1 %.677, ptr %.670, ptr undef
  store ptr %.678, ptr %excinfo, align 8
  br label %common.ret

B810.endif:
  %.744 = load i64, ptr %.730, align 8
  %.763 = shl i64 %arg.at, 32
  %.766 = or i64 %.744, %.763
  %.769 = getelementptr i64, ptr %arg.ints, i64 %.207
  store i64 %.766, ptr %.769, align 8
  store i64 %.744, ptr %retptr, align 8
  br label %common.ret

B810.if.if:
  %.742 = icmp sgt i32 %.734, 0
  %.735 = load ptr, ptr %excinfo.7, align 8
  %.743 = select i1 %.742, ptr %.735, ptr undef
  store ptr %.743, ptr %excinfo, align 8
  br label %common.ret

B922.endif:
  %sunkaddr46 = getelementptr i8, ptr %.812, i64 8
  %.826.fca.1.load = load i64, ptr %sunkaddr46, align 8
  %.826.fca.0.load = load i64, ptr %.812, align 8
  %.850 = getelementptr i64, ptr %arg.ints, i64 %.207
  store i64 %.826.fca.0.load, ptr %.850, align 8
  store i64 %.826.fca.1.load, ptr %retptr, align 8
  br label %common.ret

B922.if.if:
  %.824 = icmp sgt i32 %.816, 0
  %.817 = load ptr, ptr %excinfo.8, align 8
  %.825 = select i1 %.824, ptr %.817, ptr undef
  store ptr %.825, ptr %excinfo, align 8
  br label %common.ret

B1030.endif:
  %sunkaddr47 = getelementptr i8, ptr %.897, i64 8
  %.911.fca.1.load = load i64, ptr %sunkaddr47, align 8
  %.911.fca.0.load = load i64, ptr %.897, align 8
  %.941 = getelementptr i64, ptr %arg.ints, i64 %.207
  store i64 %.911.fca.0.load, ptr %.941, align 8
  store i64 %.911.fca.1.load, ptr %retptr, align 8
  br label %common.ret

B1030.if.if:
  %.909 = icmp sgt i32 %.901, 0
  %.902 = load ptr, ptr %excinfo.9, align 8
  %.910 = select i1 %.909, ptr %.902, ptr undef
  store ptr %.910, ptr %excinfo, align 8
  br label %common.ret
}

define internal i32 @compiled_skipped(ptr %retptr, ptr %excinfo, ptr %arg.data, i64 %arg.at, i64 %arg.end, ptr %arg.out, ptr %arg.places) {
B0:
  %.296 = alloca i64, align 8
  %excinfo.3 = alloca ptr, align 8
  store ptr null, ptr %excinfo.3, align 8
  %.375 = alloca [2 x i64], align 8
  %excinfo.4 = alloca ptr, align 8
  store ptr null, ptr %excinfo.4, align 8
  %.452 = alloca [4 x i64], align 8
  %excinfo.6 = alloca ptr, align 8
  %.650 = alloca i64, align 8
  %excinfo.8 = alloca ptr, align 8
  store ptr null, ptr %excinfo.8, align 8
  br label %B42.outer

B42.outer:
  %at.12.1.ph = phi i64 [ %arg.at, %B0 ], [ %.623, %B678 ], [ %.664, %B698.endif ], [ %at.14.1, %B416 ]
  %objects.3.1.ph = phi i64 [ 0, %B0 ], [ %objects.6.2, %B678 ], [ %objects.6.2, %B698.endif ], [ %.258210, %B416 ]
  %levels.3.1.ph = phi i64 [ 0, %B0 ], [ %levels.6.2, %B678 ], [ %levels.6.2, %B698.endif ], [ %.276212, %B416 ]
  br label %B42

B42:
  %at.12.1 = phi i64 [ %at.16.2, %B896 ], [ %at.12.1.ph, %B42.outer ]
  %.19.i = icmp slt i64 %at.12.1, %arg.end
  br i1 %.19.i, label %B16.i, label %B42.endif

B16.i:
  %.29.i = getelementptr i8, ptr %arg.data, i64 %at.12.1
  %.30.i = load i8, ptr %.29.i, align 1
  %0 = zext i8 %.30.i to i32
  switch i32 %0, label %B42.endif [
    i32 32, label %B112.preheader.i
    i32 10, label %B112.preheader.i
    i32 13, label %B112.preheader.i
    i32 9, label %B112.preheader.i
  ]

B112.preheader.i:
  %.7242.i = add nsw i64 %at.12.1, 1
  %.8343.i = icmp slt i64 %.7242.i, %arg.end
  br i1 %.8343.i, label %B134.i.preheader, label %B42.endif

B134.i.preheader:
  br label %B134.i

B134.i:
  %.7244.i = phi i64 [ %.72.i, %B231.i ], [ %.7242.i, %B134.i.preheader ]
  %.89.i = getelementptr i8, ptr %arg.data, i64 %.7244.i
  %.90.i = load i8, ptr %.89.i, align 1
  %1 = zext i8 %.90.i to i32
  switch i32 %1, label %B42.endif.loopexit [
    i32 32, label %B231.i
    i32 10, label %B231.i
    i32 13, label %B231.i
    i32 9, label %B231.i
  ]

B231.i:
  %.72.i = add i64 %.7244.i, 1
  %exitcond.not.i = icmp eq i64 %arg.end, %.72.i
  br i1 %exitcond.not.i, label %B88, label %B134.i

common.ret:
  %common.ret.op = phi i32 [ 0, %B88 ], [ 0, %B160 ], [ 0, %B216 ], [ 0, %B412 ], [ 0, %B588 ], [ 0, %B650 ], [ 0, %B778 ], [ 0, %B822 ], [ 0, %B908 ], [ %.654, %B698.if ], [ %.379, %B430.if ], [ %.456, %B532.if ], [ %.300, %B344.if ]
  ret i32 %common.ret.op

B88:
  store i64 -1, ptr %retptr, align 8
  br label %common.ret

B92:
  %.122 = getelementptr i8, ptr %arg.data, i64 %at.3.0.i
  %.123 = load i8, ptr %.122, align 1
  %.124 = zext i8 %.123 to i64
  %2 = zext i8 %.123 to i32
  switch i32 %2, label %B484 [
    i32 123, label %B138
    i32 91, label %B138
    i32 34, label %B430
  ]

B138:
  %3 = icmp eq i64 %levels.3.1.ph, 60
  br i1 %3, label %B160, label %B164

B160:
  store i64 -1, ptr %retptr, align 8
  br label %common.ret

B164:
  %.160 = add nsw i64 %at.3.0.i, 1
  %.19.i93 = icmp slt i64 %.160, %arg.end
  br i1 %.19.i93, label %B16.i95, label %B164.endif

B16.i95:
  %.29.i96 = getelementptr i8, ptr %arg.data, i64 %.160
  %.30.i97 = load i8, ptr %.29.i96, align 1
  %4 = zext i8 %.30.i97 to i32
  switch i32 %4, label %B164.endif [
    i32 32, label %B112.preheader.i98
    i32 10, label %B112.preheader.i98
    i32 13, label %B112.preheader.i98
    i32 9, label %B112.preheader.i98
  ]

B112.preheader.i98:
  %.7242.i99 = add nsw i64 %at.3.0.i, 2
  %.8343.i100 = icmp slt i64 %.7242.i99, %arg.end
  br i1 %.8343.i100, label %B134.i101.preheader, label %B164.endif

B134.i101.preheader:
  br label %B134.i101

B134.i101:
  %.7244.i102 = phi i64 [ %.72.i106, %B231.i105 ], [ %.7242.i99, %B134.i101.preheader ]
  %.89.i103 = getelementptr i8, ptr %arg.data, i64 %.7244.i102
  %.90.i104 = load i8, ptr %.89.i103, align 1
  %5 = zext i8 %.90.i104 to i32
  switch i32 %5, label %B164.endif.loopexit [
    i32 32, label %B231.i105
    i32 10, label %B231.i105
    i32 13, label %B231.i105
    i32 9, label %B231.i105
  ]

B231.i105:
  %.72.i106 = add i64 %.7244.i102, 1
  %exitcond.not.i107 = icmp eq i64 %arg.end, %.72.i106
  br i1 %exitcond.not.i107, label %B216, label %B134.i101

B216:
  store i64 -1, ptr %retptr, align 8
  br label %common.ret

B220:
  %.218 = getelementptr i8, ptr %arg.data, i64 %at.3.0.i94
  %.219 = load i8, ptr %.218, align 1
  %.221 = add nuw nsw i64 %.124, 2
  %.222 = zext i8 %.219 to i64
  %.223 = icmp eq i64 %.221, %.222
  br i1 %.223, label %B250, label %B262

B250:
  %.228 = add nsw i64 %at.3.0.i94, 1
  br label %B576

B262:
  %6 = trunc i64 %.124 to i8
  %.130.le = icmp eq i8 %6, 123
  %.236 = shl nsw i64 %objects.3.1.ph, 1
  %.268206 = load i64, ptr %arg.places, align 8
  %7 = getelementptr i64, ptr %arg.places, i64 %levels.3.1.ph
  %.273208 = getelementptr i8, ptr %7, i64 3208
  store i64 %.268206, ptr %.273208, align 8
  br i1 %.130.le, label %B344, label %B416

B344:
  store i64 0, ptr %.296, align 8
  %.300 = call i32 @compiled_named(ptr %.296, ptr %excinfo.3, ptr %arg.data, i64 %at.3.0.i94, i64 %arg.end, ptr %arg.places, i64 %.268206)
  %cond133 = icmp eq i32 %.300, 0
  br i1 %cond133, label %B344.endif, label %B344.if

B412:
  store i64 -1, ptr %retptr, align 8
  br label %common.ret

B416:
  %.258210 = phi i64 [ %.258205, %B344.endif ], [ %.236, %B262 ]
  %at.14.1 = phi i64 [ %.310, %B344.endif ], [ %at.3.0.i94, %B262 ]
  %.276212 = add nsw i64 %levels.3.1.ph, 1
  br label %B42.outer

B430:
  %.369 = add nsw i64 %at.3.0.i, 1
  call void @llvm.memset.p0.i64(ptr align 8 dereferenceable(16) %.375, i8 0, i64 16, i1 false)
  %.379 = call i32 @compiled_text(ptr %.375, ptr %excinfo.4, ptr %arg.data, i64 %.369, i64 %arg.end, ptr %arg.out, i64 0, i64 0)
  %.389.fca.0.load = load i64, ptr %.375, align 8
  %cond134 = icmp eq i32 %.379, 0
  br i1 %cond134, label %B576, label %B430.if

B484:
  %8 = trunc i64 %.124 to i8
  %.411 = icmp ugt i8 %8, 96
  br i1 %.411, label %B496, label %B532

B496:
  %.12.i.i = sub nsw i64 %arg.end, %at.3.0.i
  %.13.i.i = icmp slt i64 %.12.i.i, 4
  br i1 %.13.i.i, label %B588, label %B0.endif.i

B70.i:
  %.96.i = add nsw i64 %at.3.0.i, 4
  br label %B576

B102.i:
  %.107.i = add nsw i64 %at.3.0.i, 4
  %.109.i = icmp slt i64 %.107.i, %arg.end
  br i1 %.109.i, label %B120.i, label %B588

B120.i:
  %sunkaddr = getelementptr i8, ptr %arg.data, i64 %at.3.0.i
  %sunkaddr215 = getelementptr i8, ptr %sunkaddr, i64 4
  %.117.i = load i8, ptr %sunkaddr215, align 1
  %.121.i = icmp eq i8 %.117.i, 101
  %.124.i = add nsw i64 %at.3.0.i, 5
  br i1 %.121.i, label %B576, label %B588

B0.endif.i:
  %sunkaddr217 = getelementptr i8, ptr %arg.data, i64 %at.3.0.i
  %.24.i.i = load i32, ptr %sunkaddr217, align 1
  switch i32 %.24.i.i, label %B588 [
    i32 1819047278, label %B70.i
    i32 1702195828, label %B70.i
    i32 1936482662, label %B102.i
  ]

B532:
  call void @llvm.memset.p0.i64(ptr align 8 dereferenceable(32) %.452, i8 0, i64 32, i1 false)
  %.456 = call i32 @compiled_number(ptr %.452, ptr %excinfo.6, ptr %arg.data, i64 %at.3.0.i, i64 %arg.end)
  %sunkaddr218 = getelementptr inbounds i8, ptr %.452, i64 24
  %.466.fca.3.load = load i64, ptr %sunkaddr218, align 8
  switch i32 %.456, label %B532.if [
    i32 -2, label %B576
    i32 0, label %B576
  ]

B576:
  %at.16.2 = phi i64 [ %.228, %B250 ], [ %.466.fca.3.load, %B532 ], [ %.466.fca.3.load, %B532 ], [ %.124.i, %B120.i ], [ %.389.fca.0.load, %B430 ], [ %.96.i, %B70.i ]
  %.498 = icmp slt i64 %at.16.2, 0
  br i1 %.498, label %B588, label %B592

B588:
  store i64 -1, ptr %retptr, align 8
  br label %common.ret

B592:
  %9 = icmp sgt i64 %levels.3.1.ph, 0
  br i1 %9, label %B604.preheader, label %B896

B604.preheader:
  br label %B604

B604:
  %at.18.2 = phi i64 [ %.762, %B826 ], [ %at.16.2, %B604.preheader ]
  %objects.6.2 = phi i64 [ %.766, %B826 ], [ %objects.3.1.ph, %B604.preheader ]
  %levels.6.2 = phi i64 [ %.768, %B826 ], [ %levels.3.1.ph, %B604.preheader ]
  %.19.i109 = icmp slt i64 %at.18.2, %arg.end
  br i1 %.19.i109, label %B16.i111, label %B604.endif

B16.i111:
  %.29.i112 = getelementptr i8, ptr %arg.data, i64 %at.18.2
  %.30.i113 = load i8, ptr %.29.i112, align 1
  %10 = zext i8 %.30.i113 to i32
  switch i32 %10, label %B604.endif [
    i32 32, label %B112.preheader.i114
    i32 10, label %B112.preheader.i114
    i32 13, label %B112.preheader.i114
    i32 9, label %B112.preheader.i114
  ]

B112.preheader.i114:
  %.7242.i115 = add nsw i64 %at.18.2, 1
  %.8343.i116 = icmp slt i64 %.7242.i115, %arg.end
  br i1 %.8343.i116, label %B134.i117.preheader, label %B604.endif

B134.i117.preheader:
  br label %B134.i117

B134.i117:
  %.7244.i118 = phi i64 [ %.72.i122, %B231.i121 ], [ %.7242.i115, %B134.i117.preheader ]
  %.89.i119 = getelementptr i8, ptr %arg.data, i64 %.7244.i118
  %.90.i120 = load i8, ptr %.89.i119, align 1
  %11 = zext i8 %.90.i120 to i32
  switch i32 %11, label %B604.endif.loopexit [
    i32 32, label %B231.i121
    i32 10, label %B231.i121
    i32 13, label %B231.i121
    i32 9, label %B231.i121
  ]

B231.i121:
  %.72.i122 = add i64 %.7244.i118, 1
  %exitcond.not.i123 = icmp eq i64 %arg.end, %.72.i122
  br i1 %exitcond.not.i123, label %B650, label %B134.i117

B650:
  store i64 -1, ptr %retptr, align 8
  br label %common.ret

B654:
  %.617 = getelementptr i8, ptr %arg.data, i64 %at.3.0.i110
  %.618 = load i8, ptr %.617, align 1
  %.619 = zext i8 %.618 to i64
  %.620 = icmp eq i8 %.618, 44
  br i1 %.620, label %B678, label %B784

B678:
  %12 = and i64 %objects.6.2, 1
  %13 = icmp eq i64 %12, 0
  %.623 = add nsw i64 %at.3.0.i110, 1
  br i1 %13, label %B42.outer, label %B698

B698:
  %14 = getelementptr i64, ptr %arg.places, i64 %levels.6.2
  %.643 = getelementptr i8, ptr %14, i64 3200
  %.644 = load i64, ptr %.643, align 8
  store i64 0, ptr %.650, align 8
  %.654 = call i32 @compiled_named(ptr %.650, ptr %excinfo.8, ptr %arg.data, i64 %.623, i64 %arg.end, ptr %arg.places, i64 %.644)
  %cond = icmp eq i32 %.654, 0
  br i1 %cond, label %B698.endif, label %B698.if

B778:
  store i64 -1, ptr %retptr, align 8
  br label %common.ret

B784:
  %15 = and i64 %objects.6.2, 1
  %16 = icmp eq i64 %15, 0
  %spec.select = select i1 %16, i64 93, i64 125
  %.737.not = icmp eq i64 %spec.select, %.619
  br i1 %.737.not, label %B826, label %B822

B822:
  store i64 -1, ptr %retptr, align 8
  br label %common.ret

B826:
  %.762 = add nsw i64 %at.3.0.i110, 1
  %.766 = ashr i64 %objects.6.2, 1
  %.768 = add nsw i64 %levels.6.2, -1
  %17 = getelementptr i64, ptr %arg.places, i64 %levels.6.2
  %.784 = getelementptr i8, ptr %17, i64 3200
  %.785 = load i64, ptr %.784, align 8
  store i64 %.785, ptr %arg.places, align 8
  %.789 = icmp sgt i64 %levels.6.2, 1
  br i1 %.789, label %B604, label %B908

B896:
  %18 = icmp eq i64 %levels.3.1.ph, 0
  br i1 %18, label %B908, label %B42

B908:
  %at.15.3395 = phi i64 [ %.762, %B826 ], [ %at.16.2, %B896 ]
  store i64 %at.15.3395, ptr %retptr, align 8
  br label %common.ret

B42.endif.loopexit:
  br label %B42.endif

B42.endif:
  %at.3.0.i = phi i64 [ %at.12.1, %B16.i ], [ %at.12.1, %B42 ], [ %.7242.i, %B112.preheader.i ], [ %.7244.i, %B42.endif.loopexit ]
  %.100.not = icmp sgt i64 %arg.end, %at.3.0.i
  br i1 %.100.not, label %B92, label %B88

B164.endif.loopexit:
  br label %B164.endif

B164.endif:
  %at.3.0.i94 = phi i64 [ %.160, %B16.i95 ], [ %.160, %B164 ], [ %.7242.i99, %B112.preheader.i98 ], [ %.7244.i102, %B164.endif.loopexit ]
  %.194.not = icmp slt i64 %at.3.0.i94, %arg.end
  br i1 %.194.not, label %B220, label %B216

B344.if:
  %.308 = icmp sgt i32 %.300, 0
  %.301 = load ptr, ptr %excinfo.3, align 8
  %.309 = select i1 %.308, ptr %.301, ptr undef
  store ptr %.309, ptr %excinfo, align 8
  br label %common.ret

B344.endif:
  %.310 = load i64, ptr %.296, align 8
  %.258205 = or i64 %.236, 1
  %.324 = icmp slt i64 %.310, 0
  br i1 %.324, label %B412, label %B416

B430.if:
  %.387 = icmp sgt i32 %.379, 0
  %.380 = load ptr, ptr %excinfo.4, align 8
  %.388 = select i1 %.387, ptr %.380, ptr undef
  store ptr %.388, ptr %excinfo, align 8
  br label %common.ret

B532.if:
  store ptr null, ptr %excinfo, align 8
  br label %common.ret

B604.endif.loopexit:
  br label %B604.endif

B604.endif:
  %at.3.0.i110 = phi i64 [ %at.18.2, %B16.i111 ], [ %at.18.2, %B604 ], [ %.7242.i115, %B112.preheader.i114 ], [ %.7244.i118, %B604.endif.loopexit ]
  %.595.not = icmp slt i64 %at.3.0.i110, %arg.end
  br i1 %.595.not, label %B654, label %B650

B698.if:
  %.662 = icmp sgt i32 %.654, 0
  %.655 = load ptr, ptr %excinfo.8, align 8
  %.663 = select i1 %.662, ptr %.655, ptr undef
  store ptr %.663, ptr %excinfo, align 8
  br label %common.ret

B698.endif:
  %.664 = load i64, ptr %.650, align 8
  %.678 = icmp slt i64 %.664, 0
  br i1 %.678, label %B778, label %B42.outer
}

define internal i32 @compiled_name_end(ptr %retptr, ptr %excinfo, ptr %arg.data, i64 %arg.at, i64 %arg.end) {
B0:
  %.15 = icmp slt i64 %arg.at, %arg.end
  br i1 %.15, label %B16.preheader, label %common.ret

B16.preheader:
  br label %B16

B16:
  %at.2.0 = phi i64 [ %.122, %B148 ], [ %arg.at, %B16.preheader ]
  %.22 = getelementptr i8, ptr %arg.data, i64 %at.2.0
  %.23 = load i8, ptr %.22, align 1
  %0 = zext i8 %.23 to i32
  %.30 = icmp eq i8 %.23, 34
  br i1 %.30, label %common.ret, label %B54

common.ret:
  %.sink = phi i64 [ -1, %B0 ], [ -1, %B148 ], [ -1, %B54.i ], [ -1, %B98 ], [ -1, %B218.1.i ], [ %at.2.0, %B16 ], [ -1, %B54 ], [ -1, %B130 ]
  store i64 %.sink, ptr %retptr, align 8
  ret i32 0

B54:
  %1 = trunc i32 %0 to i8
  %2 = trunc i32 %0 to i8
  %.44 = icmp ult i8 %2, 32
  %.47 = icmp eq i8 %1, 92
  %or.cond = or i1 %.44, %.47
  br i1 %or.cond, label %common.ret, label %B82

B82:
  %3 = trunc i32 %0 to i8
  %.60 = icmp sgt i8 %3, -1
  br i1 %.60, label %B148, label %B98

B98:
  %4 = trunc i32 %0 to i8
  %5 = add nsw i8 %4, 11
  %or.cond.i = icmp ult i8 %5, -51
  br i1 %or.cond.i, label %common.ret, label %B54.i

B54.i:
  %6 = trunc i32 %0 to i8
  %7 = trunc i32 %0 to i8
  %.39.i = icmp ugt i8 %7, -33
  %.46.i = icmp ult i8 %6, -16
  %spec.select.i = select i1 %.46.i, i64 3, i64 4
  %"$phi88.0.3.0.i" = select i1 %.39.i, i64 %spec.select.i, i64 2
  %.62.i = sub nsw i64 %arg.end, %at.2.0
  %.66.i = icmp sgt i64 %"$phi88.0.3.0.i", %.62.i
  br i1 %.66.i, label %common.ret, label %B112.i

B112.i:
  switch i32 %0, label %B180.i [
    i32 224, label %B218.peel.i
    i32 240, label %B182.endif.fold.split.i
    i32 237, label %B182.endif.fold.split104.i
    i32 244, label %B182.endif.fold.split105.i
  ]

B180.i:
  br label %B218.peel.i

B218.i:
  %8 = trunc i32 %0 to i8
  %9 = icmp ult i8 %8, -16
  %sunkaddr = getelementptr i8, ptr %arg.data, i64 %at.2.0
  %sunkaddr2 = getelementptr i8, ptr %sunkaddr, i64 2
  %.256.i = load i8, ptr %sunkaddr2, align 1
  %or.cond106.i = icmp sgt i8 %.256.i, -65
  %brmerge1.i = or i1 %9, %or.cond106.i
  %.mux2.i = select i1 %or.cond106.i, i64 0, i64 %spec.select.i
  br i1 %brmerge1.i, label %B130, label %B218.1.i

B218.1.i:
  %sunkaddr4 = getelementptr i8, ptr %arg.data, i64 %at.2.0
  %sunkaddr6 = getelementptr i8, ptr %sunkaddr4, i64 3
  %.256.1.i = load i8, ptr %sunkaddr6, align 1
  %or.cond106.1.i = icmp sgt i8 %.256.1.i, -65
  br i1 %or.cond106.1.i, label %common.ret, label %B148

B182.endif.fold.split.i:
  br label %B218.peel.i

B182.endif.fold.split104.i:
  br label %B218.peel.i

B182.endif.fold.split105.i:
  br label %B218.peel.i

B218.peel.i:
  %"$phi146.0.3.095.i" = phi i64 [ 128, %B182.endif.fold.split104.i ], [ 144, %B182.endif.fold.split.i ], [ 128, %B180.i ], [ 160, %B112.i ], [ 128, %B182.endif.fold.split105.i ]
  %"$phi182.0.3.0.i" = phi i64 [ 159, %B182.endif.fold.split104.i ], [ 191, %B182.endif.fold.split.i ], [ 191, %B180.i ], [ 191, %B112.i ], [ 143, %B182.endif.fold.split105.i ]
  %10 = trunc i32 %0 to i8
  %11 = icmp ult i8 %10, -32
  %sunkaddr7 = getelementptr i8, ptr %arg.data, i64 %at.2.0
  %sunkaddr8 = getelementptr i8, ptr %sunkaddr7, i64 1
  %.256.peel.i = load i8, ptr %sunkaddr8, align 1
  %.257.peel.i = zext i8 %.256.peel.i to i64
  %.264.peel.i = icmp ugt i64 %"$phi146.0.3.095.i", %.257.peel.i
  %.270.peel.i = icmp ult i64 %"$phi182.0.3.0.i", %.257.peel.i
  %or.cond106.peel.i = select i1 %.264.peel.i, i1 true, i1 %.270.peel.i
  %brmerge.i = or i1 %11, %or.cond106.peel.i
  %.mux.i = select i1 %or.cond106.peel.i, i64 0, i64 %"$phi88.0.3.0.i"
  br i1 %brmerge.i, label %B130, label %B218.i

B130:
  %"$phi88.0.3.0.sink.i" = phi i64 [ %.mux.i, %B218.peel.i ], [ %.mux2.i, %B218.i ]
  %.108 = icmp eq i64 %"$phi88.0.3.0.sink.i", 0
  br i1 %.108, label %common.ret, label %B148

B148:
  %"$phi130.0.2.132" = phi i64 [ %"$phi88.0.3.0.sink.i", %B130 ], [ 1, %B82 ], [ 4, %B218.1.i ]
  %.122 = add nsw i64 %"$phi130.0.2.132", %at.2.0
  %.128 = icmp slt i64 %.122, %arg.end
  br i1 %.128, label %B16, label %common.ret
}

define i64 @parse(ptr %a0, ptr %a1, i64 %a2, i64 %a3, i64 %a4, ptr %a5, ptr %a6, ptr %a7, ptr %a8, ptr %a9, ptr %a10, ptr %a11, i64 %a12, ptr %a13, ptr %a14, ptr %a15, ptr %a16, ptr %a17, ptr %a18) {
  %answer = alloca i64, align 8
  store i64 0, ptr %answer, align 8
  %status = call i32 @compiled_parse(ptr %answer, ptr null, ptr %a0, ptr %a1, i64 %a2, i64 %a3, i64 %a4, ptr %a5, ptr %a6, ptr %a7, ptr %a8, ptr %a9, ptr %a10, ptr %a11, i64 %a12, ptr %a13, ptr %a14, ptr %a15, ptr %a16, ptr %a17, ptr %a18)
  %fault = load i64, ptr %answer, align 8
  ret i64 %fault
}
