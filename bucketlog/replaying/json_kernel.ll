; Written by scripts/kernels.py from json_kernel.py with numba 0.68.1.
declare void @llvm.memset.p0.i64(ptr captures(none), i8, i64, i1 immarg)
declare void @llvm.lifetime.start.p0(ptr captures(none))
declare void @llvm.lifetime.end.p0(ptr captures(none))

define internal i32 @compiled_filled_row(ptr %retptr, ptr %excinfo, ptr %arg.data, i64 %arg.at, i64 %arg.end, i64 %arg.row, i64 %arg.rows, i64 %arg.fields, i64 %arg.needed, ptr %arg.plan, ptr %arg.names, ptr %arg.ints, ptr %arg.reals, ptr %arg.flags, ptr %arg.texts, i64 %arg.room, ptr %arg.valid, ptr %arg.hard, ptr %arg.used, ptr %arg.powers) {
B0:
  %.324 = alloca [2 x i64], align 8
  %excinfo.4 = alloca ptr, align 8
  store ptr null, ptr %excinfo.4, align 8
  %.434 = alloca i64, align 8
  store i64 0, ptr %.434, align 8
  %excinfo.5 = alloca ptr, align 8
  store ptr null, ptr %excinfo.5, align 8
  %.545 = alloca i64, align 8
  store i64 0, ptr %.545, align 8
  %excinfo.6 = alloca ptr, align 8
  store ptr null, ptr %excinfo.6, align 8
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
  br i1 %exitcond.not.i, label %B84, label %B134.i

B60:
  %.112 = getelementptr i8, ptr %arg.data, i64 %at.3.0.i
  %.113 = load i8, ptr %.112, align 1
  %.115.not = icmp eq i8 %.113, 123
  br i1 %.115.not, label %B88, label %B84

common.ret:
  %common.ret.op = phi i32 [ 0, %B84 ], [ 0, %B222 ], [ 0, %B286 ], [ 0, %B356 ], [ 0, %B460 ], [ 0, %B510 ], [ 0, %B588 ], [ 0, %B630 ], [ %.328, %B226.if.if ], [ %.438, %B302.if.if ], [ %.549, %B360.if.if ]
  ret i32 %common.ret.op

B84:
  store i8 0, ptr %retptr, align 1
  br label %common.ret

B88:
  %.162 = add nsw i64 %at.3.0.i, 1
  %.19.i23 = icmp slt i64 %.162, %arg.end
  br i1 %.19.i23, label %B16.i25, label %B88.endif

B16.i25:
  %.29.i26 = getelementptr i8, ptr %arg.data, i64 %.162
  %.30.i27 = load i8, ptr %.29.i26, align 1
  %2 = zext i8 %.30.i27 to i32
  switch i32 %2, label %B88.endif [
    i32 32, label %B112.preheader.i28
    i32 10, label %B112.preheader.i28
    i32 13, label %B112.preheader.i28
    i32 9, label %B112.preheader.i28
  ]

B112.preheader.i28:
  %.7242.i29 = add nsw i64 %at.3.0.i, 2
  %.8343.i30 = icmp slt i64 %.7242.i29, %arg.end
  br i1 %.8343.i30, label %B134.i31.preheader, label %B88.endif

B134.i31.preheader:
  br label %B134.i31

B134.i31:
  %.7244.i32 = phi i64 [ %.72.i36, %B231.i35 ], [ %.7242.i29, %B134.i31.preheader ]
  %.89.i33 = getelementptr i8, ptr %arg.data, i64 %.7244.i32
  %.90.i34 = load i8, ptr %.89.i33, align 1
  %3 = zext i8 %.90.i34 to i32
  switch i32 %3, label %B88.endif.loopexit [
    i32 32, label %B231.i35
    i32 10, label %B231.i35
    i32 13, label %B231.i35
    i32 9, label %B231.i35
  ]

B231.i35:
  %.72.i36 = add i64 %.7244.i32, 1
  %exitcond.not.i37 = icmp eq i64 %arg.end, %.72.i36
  br i1 %exitcond.not.i37, label %B226.preheader, label %B134.i31

B140:
  %.200 = getelementptr i8, ptr %arg.data, i64 %at.3.0.i24
  %.201 = load i8, ptr %.200, align 1
  %.203 = icmp eq i8 %.201, 125
  br i1 %.203, label %B164, label %B226.preheader

B226.preheader:
  %at.1.7.0.ph = phi i64 [ %at.3.0.i24, %B140 ], [ %at.3.0.i24, %B88.endif ], [ %arg.end, %B231.i35 ]
  br label %B226

B164:
  %.238 = icmp eq i64 %arg.needed, 0
  br i1 %.238, label %B176, label %B222

B176:
  %.247 = add nsw i64 %at.3.0.i24, 1
  %.19.i39 = icmp slt i64 %.247, %arg.end
  br i1 %.19.i39, label %B16.i41, label %B176.endif

B16.i41:
  %.29.i42 = getelementptr i8, ptr %arg.data, i64 %.247
  %.30.i43 = load i8, ptr %.29.i42, align 1
  %4 = zext i8 %.30.i43 to i32
  switch i32 %4, label %B176.endif [
    i32 32, label %B112.preheader.i44
    i32 10, label %B112.preheader.i44
    i32 13, label %B112.preheader.i44
    i32 9, label %B112.preheader.i44
  ]

B112.preheader.i44:
  %.7242.i45 = add nsw i64 %at.3.0.i24, 2
  %.8343.i46 = icmp slt i64 %.7242.i45, %arg.end
  br i1 %.8343.i46, label %B134.i47.preheader, label %B176.endif

B134.i47.preheader:
  br label %B134.i47

B134.i47:
  %.7244.i48 = phi i64 [ %.72.i52, %B231.i51 ], [ %.7242.i45, %B134.i47.preheader ]
  %.89.i49 = getelementptr i8, ptr %arg.data, i64 %.7244.i48
  %.90.i50 = load i8, ptr %.89.i49, align 1
  %5 = zext i8 %.90.i50 to i32
  switch i32 %5, label %B134.i47.B176.endif.loopexit_crit_edge [
    i32 32, label %B231.i51
    i32 10, label %B231.i51
    i32 13, label %B231.i51
    i32 9, label %B231.i51
  ]

B231.i51:
  %.72.i52 = add i64 %.7244.i48, 1
  %exitcond.not.i53 = icmp eq i64 %arg.end, %.72.i52
  br i1 %exitcond.not.i53, label %B176.endif, label %B134.i47

B222:
  %"$phi222.0.2.0" = phi i8 [ %13, %B176.endif ], [ 0, %B164 ]
  store i8 %"$phi222.0.2.0", ptr %retptr, align 1
  br label %common.ret

B226:
  %seen.2.0 = phi i64 [ %seen.3.1, %B514.endif ], [ 0, %B226.preheader ]
  %expected.2.0 = phi i64 [ %expected.3.1, %B514.endif ], [ 0, %B226.preheader ]
  %at.1.7.0 = phi i64 [ %at.3.0.i72, %B514.endif ], [ %at.1.7.0.ph, %B226.preheader ]
  call void @llvm.memset.p0.i64(ptr align 8 dereferenceable(16) %.324, i8 0, i64 16, i1 false)
  %.328 = call i32 @compiled_member(ptr %.324, ptr %excinfo.4, ptr %arg.data, i64 %at.1.7.0, i64 %arg.end, ptr %arg.plan, ptr %arg.names, i64 %arg.fields, i64 %expected.2.0)
  %.338.fca.0.load = load i64, ptr %.324, align 8
  %sunkaddr134 = getelementptr inbounds i8, ptr %.324, i64 8
  %.338.fca.1.load = load i64, ptr %sunkaddr134, align 8
  %cond = icmp eq i32 %.328, 0
  br i1 %cond, label %B226.endif, label %B226.if.if

B286:
  store i8 0, ptr %retptr, align 1
  br label %common.ret

B290:
  %.413 = icmp slt i64 %.338.fca.0.load, 0
  br i1 %.413, label %B302, label %B340

B302:
  store i64 0, ptr %.434, align 8
  %.438 = call i32 @compiled_skipped(ptr %.434, ptr %excinfo.5, ptr %arg.data, i64 %.338.fca.1.load, i64 %arg.end, ptr %arg.texts)
  %cond94 = icmp eq i32 %.438, 0
  br i1 %cond94, label %B448, label %B302.if.if

B340:
  %6 = shl nuw i64 1, %.338.fca.0.load
  %7 = and i64 %6, %seen.2.0
  %.470.not = icmp eq i64 %7, 0
  br i1 %.470.not, label %B360, label %B356

B356:
  store i8 0, ptr %retptr, align 1
  br label %common.ret

B360:
  %.518 = or i64 %6, %seen.2.0
  %.522 = add nuw nsw i64 %.338.fca.0.load, 1
  store i64 0, ptr %.545, align 8
  %.549 = call i32 @compiled_valued(ptr %.545, ptr %excinfo.6, ptr %arg.data, i64 %.338.fca.1.load, i64 %arg.end, i64 %arg.row, i64 %arg.rows, i64 %.338.fca.0.load, i64 %arg.fields, ptr %arg.plan, ptr %arg.ints, ptr %arg.reals, ptr %arg.flags, ptr %arg.texts, i64 %arg.room, ptr %arg.valid, ptr %arg.hard, ptr %arg.used, ptr %arg.powers)
  %cond95 = icmp eq i32 %.549, 0
  br i1 %cond95, label %B448, label %B360.if.if

B448:
  %seen.3.1 = phi i64 [ %seen.2.0, %B302 ], [ %.518, %B360 ]
  %expected.3.1 = phi i64 [ %expected.2.0, %B302 ], [ %.522, %B360 ]
  %at.1.8.1.in = phi ptr [ %.434, %B302 ], [ %.545, %B360 ]
  %at.1.8.1 = load i64, ptr %at.1.8.1.in, align 8
  %.577 = icmp slt i64 %at.1.8.1, 0
  br i1 %.577, label %B460, label %B464

B460:
  store i8 0, ptr %retptr, align 1
  br label %common.ret

B464:
  %.19.i55 = icmp slt i64 %at.1.8.1, %arg.end
  br i1 %.19.i55, label %B16.i57, label %B464.endif

B16.i57:
  %.29.i58 = getelementptr i8, ptr %arg.data, i64 %at.1.8.1
  %.30.i59 = load i8, ptr %.29.i58, align 1
  %8 = zext i8 %.30.i59 to i32
  switch i32 %8, label %B464.endif [
    i32 32, label %B112.preheader.i60
    i32 10, label %B112.preheader.i60
    i32 13, label %B112.preheader.i60
    i32 9, label %B112.preheader.i60
  ]

B112.preheader.i60:
  %.7242.i61 = add nuw nsw i64 %at.1.8.1, 1
  %.8343.i62 = icmp ult i64 %.7242.i61, %arg.end
  br i1 %.8343.i62, label %B134.i63.preheader, label %B464.endif

B134.i63.preheader:
  br label %B134.i63

B134.i63:
  %.7244.i64 = phi i64 [ %.72.i68, %B231.i67 ], [ %.7242.i61, %B134.i63.preheader ]
  %.89.i65 = getelementptr i8, ptr %arg.data, i64 %.7244.i64
  %.90.i66 = load i8, ptr %.89.i65, align 1
  %9 = zext i8 %.90.i66 to i32
  switch i32 %9, label %B464.endif.loopexit [
    i32 32, label %B231.i67
    i32 10, label %B231.i67
    i32 13, label %B231.i67
    i32 9, label %B231.i67
  ]

B231.i67:
  %.72.i68 = add i64 %.7244.i64, 1
  %exitcond.not.i69 = icmp eq i64 %arg.end, %.72.i68
  br i1 %exitcond.not.i69, label %B510, label %B134.i63

B510:
  store i8 0, ptr %retptr, align 1
  br label %common.ret

B514:
  %.704 = getelementptr i8, ptr %arg.data, i64 %at.3.0.i56
  %.705 = load i8, ptr %.704, align 1
  %10 = zext i8 %.705 to i32
  %.713 = add nsw i64 %at.3.0.i56, 1
  %.19.i71 = icmp slt i64 %.713, %arg.end
  br i1 %.19.i71, label %B16.i73, label %B514.endif

B16.i73:
  %.29.i74 = getelementptr i8, ptr %arg.data, i64 %.713
  %.30.i75 = load i8, ptr %.29.i74, align 1
  %11 = zext i8 %.30.i75 to i32
  switch i32 %11, label %B514.endif [
    i32 32, label %B112.preheader.i76
    i32 10, label %B112.preheader.i76
    i32 13, label %B112.preheader.i76
    i32 9, label %B112.preheader.i76
  ]

B112.preheader.i76:
  %.7242.i77 = add nsw i64 %at.3.0.i56, 2
  %.8343.i78 = icmp slt i64 %.7242.i77, %arg.end
  br i1 %.8343.i78, label %B134.i79.preheader, label %B514.endif

B134.i79.preheader:
  br label %B134.i79

B134.i79:
  %.7244.i80 = phi i64 [ %.72.i84, %B231.i83 ], [ %.7242.i77, %B134.i79.preheader ]
  %.89.i81 = getelementptr i8, ptr %arg.data, i64 %.7244.i80
  %.90.i82 = load i8, ptr %.89.i81, align 1
  %12 = zext i8 %.90.i82 to i32
  switch i32 %12, label %B134.i79.B514.endif.loopexit_crit_edge [
    i32 32, label %B231.i83
    i32 10, label %B231.i83
    i32 13, label %B231.i83
    i32 9, label %B231.i83
  ]

B231.i83:
  %.72.i84 = add i64 %.7244.i80, 1
  %exitcond.not.i85 = icmp eq i64 %arg.end, %.72.i84
  br i1 %exitcond.not.i85, label %B514.endif, label %B134.i79

B588:
  %.784 = and i64 %seen.3.1, %arg.needed
  %.788 = icmp eq i64 %.784, %arg.needed
  %.797 = icmp eq i64 %at.3.0.i72, %arg.end
  %spec.select = and i1 %.788, %.797
  %.812 = zext i1 %spec.select to i8
  store i8 %.812, ptr %retptr, align 1
  br label %common.ret

B630:
  store i8 0, ptr %retptr, align 1
  br label %common.ret

B0.endif.loopexit:
  br label %B0.endif

B0.endif:
  %at.3.0.i = phi i64 [ %arg.at, %B16.i ], [ %arg.at, %B0 ], [ %.7242.i, %B112.preheader.i ], [ %.7244.i, %B0.endif.loopexit ]
  %.108.not = icmp slt i64 %at.3.0.i, %arg.end
  br i1 %.108.not, label %B60, label %B84

B88.endif.loopexit:
  br label %B88.endif

B88.endif:
  %at.3.0.i24 = phi i64 [ %.162, %B16.i25 ], [ %.162, %B88 ], [ %.7242.i29, %B112.preheader.i28 ], [ %.7244.i32, %B88.endif.loopexit ]
  %.196 = icmp slt i64 %at.3.0.i24, %arg.end
  br i1 %.196, label %B140, label %B226.preheader

B134.i47.B176.endif.loopexit_crit_edge:
  br label %B176.endif

B176.endif:
  %at.3.0.i40 = phi i64 [ %.247, %B16.i41 ], [ %.247, %B176 ], [ %.7242.i45, %B112.preheader.i44 ], [ %.7244.i48, %B134.i47.B176.endif.loopexit_crit_edge ], [ %arg.end, %B231.i51 ]
  %.279 = icmp eq i64 %at.3.0.i40, %arg.end
  %13 = zext i1 %.279 to i8
  br label %B222

B226.endif:
  %.365 = icmp slt i64 %.338.fca.1.load, 0
  br i1 %.365, label %B286, label %B290

B226.if.if:
  %.336 = icmp sgt i32 %.328, 0
  %.329 = load ptr, ptr %excinfo.4, align 8
  %.337 = select i1 %.336, ptr %.329, ptr undef
  store ptr %.337, ptr %excinfo, align 8
  br label %common.ret

B302.if.if:
  %.446 = icmp sgt i32 %.438, 0
  %.439 = load ptr, ptr %excinfo.5, align 8
  %.447 = select i1 %.446, ptr %.439, ptr undef
  store ptr %.447, ptr %excinfo, align 8
  br label %common.ret

B360.if.if:
  %.557 = icmp sgt i32 %.549, 0
  %.550 = load ptr, ptr %excinfo.6, align 8
  %.558 = select i1 %.557, ptr %.550, ptr undef
  store ptr %.558, ptr %excinfo, align 8
  br label %common.ret

B464.endif.loopexit:
  br label %B464.endif

B464.endif:
  %at.3.0.i56 = phi i64 [ %at.1.8.1, %B16.i57 ], [ %at.1.8.1, %B464 ], [ %.7242.i61, %B112.preheader.i60 ], [ %.7244.i64, %B464.endif.loopexit ]
  %.657.not = icmp slt i64 %at.3.0.i56, %arg.end
  br i1 %.657.not, label %B514, label %B510

B134.i79.B514.endif.loopexit_crit_edge:
  br label %B514.endif

B514.endif:
  %at.3.0.i72 = phi i64 [ %.713, %B16.i73 ], [ %.713, %B514 ], [ %.7242.i77, %B112.preheader.i76 ], [ %.7244.i80, %B134.i79.B514.endif.loopexit_crit_edge ], [ %arg.end, %B231.i83 ]
  switch i32 %10, label %B630 [
    i32 125, label %B588
    i32 44, label %B226
  ]
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
  %sunkaddr44 = getelementptr i8, ptr %sunkaddr, i64 1
  %.219 = load i8, ptr %sunkaddr44, align 1
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
  %sunkaddr46 = getelementptr i8, ptr %arg.data, i64 %at.4.0
  %sunkaddr48 = getelementptr i8, ptr %sunkaddr46, i64 2
  %.256.i = load i8, ptr %sunkaddr48, align 1
  %or.cond106.i = icmp sgt i8 %.256.i, -65
  %brmerge1.i = or i1 %9, %or.cond106.i
  %.mux2.i = select i1 %or.cond106.i, i64 0, i64 %spec.select.i
  br i1 %brmerge1.i, label %B288.endif, label %B218.1.i

B218.1.i:
  %sunkaddr50 = getelementptr i8, ptr %arg.data, i64 %at.4.0
  %sunkaddr51 = getelementptr i8, ptr %sunkaddr50, i64 3
  %.256.1.i = load i8, ptr %sunkaddr51, align 1
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
  %sunkaddr52 = getelementptr i8, ptr %arg.data, i64 %at.4.0
  %sunkaddr53 = getelementptr i8, ptr %sunkaddr52, i64 1
  %.256.peel.i = load i8, ptr %sunkaddr53, align 1
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

define internal i32 @compiled_zone(ptr %retptr, ptr %excinfo, ptr %arg.data, i64 %arg.at, i64 %arg.end) {
B0:
  %.15 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %.16 = load i8, ptr %.15, align 1
  %0 = zext i8 %.16 to i32
  switch i32 %0, label %common.ret [
    i32 90, label %B28
    i32 43, label %B90
    i32 45, label %B90
  ]

common.ret:
  %spec.select49.sink = phi i64 [ %spec.select49, %B310 ], [ 0, %B112 ], [ 0, %B90 ], [ 0, %B28 ], [ 0, %B0 ], [ 0, %B112.i4 ], [ 0, %B178.endif ], [ 0, %B178.endif.endif ]
  %.257.sink = phi i64 [ %.257, %B310 ], [ -1, %B112 ], [ -1, %B90 ], [ %.25, %B28 ], [ -1, %B0 ], [ -1, %B112.i4 ], [ -1, %B178.endif ], [ -1, %B178.endif.endif ]
  store i64 %spec.select49.sink, ptr %retptr, align 8
  %retptr.repack50 = getelementptr i8, ptr %retptr, i64 8
  store i64 %.257.sink, ptr %retptr.repack50, align 8
  ret i32 0

B28:
  %.25 = add nsw i64 %arg.at, 1
  br label %common.ret

B90:
  %.54 = sub nsw i64 %arg.end, %arg.at
  %.55 = icmp slt i64 %.54, 6
  br i1 %.55, label %common.ret, label %B112

B112:
  %sunkaddr = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr2 = getelementptr i8, ptr %sunkaddr, i64 3
  %.77 = load i8, ptr %sunkaddr2, align 1
  %.79 = icmp eq i8 %.77, 58
  %spec.select = select i1 %.79, i64 4, i64 3
  %.100 = add nuw nsw i64 %spec.select, 3
  %.101 = icmp ult i64 %.54, %.100
  br i1 %.101, label %common.ret, label %B178

B178:
  %sunkaddr4 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr6 = getelementptr i8, ptr %sunkaddr4, i64 1
  %.137.i = load i8, ptr %sunkaddr6, align 1
  %.138.i = zext i8 %.137.i to i64
  %1 = add i8 %.137.i, -58
  %or.cond.i = icmp ult i8 %1, -10
  br i1 %or.cond.i, label %B178.endif, label %B112.i

B112.i:
  %sunkaddr8 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr9 = getelementptr i8, ptr %sunkaddr8, i64 2
  %.137.1.i = load i8, ptr %sunkaddr9, align 1
  %.138.1.i = zext i8 %.137.1.i to i64
  %2 = add i8 %.137.1.i, -58
  %or.cond.1.i = icmp ult i8 %2, -10
  br i1 %or.cond.1.i, label %B178.endif, label %B112.1.i

B112.1.i:
  %3 = mul nuw nsw i64 %.138.i, 10
  %.164.1.i = add nsw i64 %3, -528
  %.167.1.i = add nsw i64 %.164.1.i, %.138.1.i
  br label %B178.endif

B310:
  %.217 = mul nuw nsw i64 %storemerge.i, 60
  %.221 = add nuw nsw i64 %.167.1.i11, %.217
  %.234 = icmp eq i8 %.16, 45
  %.237 = sub nsw i64 0, %.221
  %spec.select49 = select i1 %.234, i64 %.237, i64 %.221
  %.257 = add nsw i64 %.152, 2
  br label %common.ret

B178.endif:
  %storemerge.i = phi i64 [ -1000000, %B178 ], [ %.167.1.i, %B112.1.i ], [ -1000000, %B112.i ]
  %.152 = add nsw i64 %spec.select, %arg.at
  %4 = getelementptr i8, ptr %arg.data, i64 %.152
  %.137.i1 = load i8, ptr %4, align 1
  %.138.i2 = zext i8 %.137.i1 to i64
  %5 = add i8 %.137.i1, -58
  %or.cond.i3 = icmp ult i8 %5, -10
  br i1 %or.cond.i3, label %common.ret, label %B112.i4

B112.i4:
  %sunkaddr10 = getelementptr i8, ptr %arg.data, i64 %.152
  %sunkaddr11 = getelementptr i8, ptr %sunkaddr10, i64 1
  %.137.1.i6 = load i8, ptr %sunkaddr11, align 1
  %.138.1.i9 = zext i8 %.137.1.i6 to i64
  %6 = add i8 %.137.1.i6, -58
  %or.cond.1.i7 = icmp ult i8 %6, -10
  br i1 %or.cond.1.i7, label %common.ret, label %B178.endif.endif

B178.endif.endif:
  %7 = mul nuw nsw i64 %.138.i2, 10
  %.164.1.i10 = add nsw i64 %7, -528
  %.167.1.i11 = add nsw i64 %.164.1.i10, %.138.1.i9
  %or.cond = icmp ugt i64 %storemerge.i, 23
  %.194 = icmp ugt i64 %.167.1.i11, 59
  %or.cond48 = select i1 %or.cond, i1 true, i1 %.194
  br i1 %or.cond48, label %common.ret, label %B310
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

B126:
  %sunkaddr2 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr3 = getelementptr i8, ptr %sunkaddr2, i64 2
  %.92 = load i8, ptr %sunkaddr3, align 1
  %.94.not = icmp eq i8 %.92, 58
  br i1 %.94.not, label %B160, label %common.ret

common.ret:
  %.643.sink = phi i64 [ %.643, %B596 ], [ 0, %B226.endif ], [ 0, %B204 ], [ 0, %B126 ], [ 0, %B112.i20 ], [ 0, %B0.endif ], [ 0, %B0.endif.endif ], [ 0, %B112.i5 ], [ 0, %B226 ], [ 0, %B562 ], [ 0, %B358 ], [ 0, %B328 ], [ 0, %B424.else.if.preheader ], [ 0, %B424.else.if.5 ], [ 0, %B424.else.if.4 ], [ 0, %B424.else.if.3 ], [ 0, %B424.else.if.2 ], [ 0, %B424.else.if.1 ], [ 0, %B496.5 ]
  %at.7.0.sink = phi i64 [ %at.7.0, %B596 ], [ -1, %B226.endif ], [ -1, %B204 ], [ -1, %B126 ], [ -1, %B112.i20 ], [ -1, %B0.endif ], [ -1, %B0.endif.endif ], [ -1, %B112.i5 ], [ -1, %B226 ], [ -1, %B562 ], [ -1, %B358 ], [ -1, %B328 ], [ -1, %B424.else.if.preheader ], [ -1, %B424.else.if.5 ], [ -1, %B424.else.if.4 ], [ -1, %B424.else.if.3 ], [ -1, %B424.else.if.2 ], [ -1, %B424.else.if.1 ], [ -1, %B496.5 ]
  store i64 %.643.sink, ptr %retptr, align 8
  %retptr.repack176 = getelementptr i8, ptr %retptr, i64 8
  store i64 %at.7.0.sink, ptr %retptr.repack176, align 8
  ret i32 0

B160:
  %.117 = add nsw i64 %arg.at, 5
  %.151 = getelementptr i8, ptr %arg.data, i64 %.117
  %.152 = load i8, ptr %.151, align 1
  %.154 = icmp eq i8 %.152, 58
  br i1 %.154, label %B204, label %B596

B204:
  %.164 = sub nsw i64 %arg.end, %.117
  %.165 = icmp slt i64 %.164, 4
  br i1 %.165, label %common.ret, label %B226

B226:
  %sunkaddr4 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr5 = getelementptr i8, ptr %sunkaddr4, i64 6
  %.137.i2 = load i8, ptr %sunkaddr5, align 1
  %.138.i3 = zext i8 %.137.i2 to i64
  %4 = add i8 %.137.i2, -58
  %or.cond.i4 = icmp ult i8 %4, -10
  br i1 %or.cond.i4, label %common.ret, label %B112.i5

B112.i5:
  %sunkaddr6 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr7 = getelementptr i8, ptr %sunkaddr6, i64 7
  %.137.1.i7 = load i8, ptr %sunkaddr7, align 1
  %.138.1.i10 = zext i8 %.137.1.i7 to i64
  %5 = add i8 %.137.1.i7, -58
  %or.cond.1.i8 = icmp ult i8 %5, -10
  br i1 %or.cond.1.i8, label %common.ret, label %B226.endif

B294:
  %.257 = add nsw i64 %arg.at, 8
  %.268 = getelementptr i8, ptr %arg.data, i64 %.257
  %.269 = load i8, ptr %.268, align 1
  %.271 = icmp eq i8 %.269, 46
  br i1 %.271, label %B328, label %B596

B328:
  %.284 = add nsw i64 %arg.at, 9
  %.303 = icmp slt i64 %.284, %arg.end
  br i1 %.303, label %B358, label %common.ret

B358:
  %.313 = getelementptr i8, ptr %arg.data, i64 %.284
  %.314 = load i8, ptr %.313, align 1
  %.413 = zext i8 %.314 to i64
  %6 = add i8 %.314, -48
  %or.cond173 = icmp ult i8 %6, 10
  br i1 %or.cond173, label %B424.else.if.preheader, label %common.ret

B424.else.if.preheader:
  %7 = add nsw i64 %arg.end, -1
  %exitcond.not = icmp eq i64 %.284, %7
  br i1 %exitcond.not, label %common.ret, label %B496

B496:
  %8 = mul nuw nsw i64 %.413, 100000
  %.417 = add nsw i64 %8, -4800000
  %.429 = add nsw i64 %arg.at, 10
  %.450 = getelementptr i8, ptr %arg.data, i64 %.429
  %.451 = load i8, ptr %.450, align 1
  %.413.1 = zext i8 %.451 to i64
  %9 = add i8 %.451, -48
  %or.cond174 = icmp ult i8 %9, 10
  br i1 %or.cond174, label %B424.else.if.1, label %B562

B424.else.if.1:
  %exitcond.not.1 = icmp eq i64 %.429, %7
  br i1 %exitcond.not.1, label %common.ret, label %B496.1

B496.1:
  %10 = mul nuw nsw i64 %.413.1, 10000
  %.417.1 = add nsw i64 %8, -5280000
  %.419.1 = add nsw i64 %.417.1, %10
  %.429.1 = add nsw i64 %arg.at, 11
  %.450.1 = getelementptr i8, ptr %arg.data, i64 %.429.1
  %.451.1 = load i8, ptr %.450.1, align 1
  %.413.2 = zext i8 %.451.1 to i64
  %11 = add i8 %.451.1, -48
  %or.cond174.1 = icmp ult i8 %11, 10
  br i1 %or.cond174.1, label %B424.else.if.2, label %B562

B424.else.if.2:
  %exitcond.not.2 = icmp eq i64 %.429.1, %7
  br i1 %exitcond.not.2, label %common.ret, label %B496.2

B496.2:
  %12 = mul nuw nsw i64 %.413.2, 1000
  %.417.2 = add nsw i64 %.419.1, -48000
  %.419.2 = add nsw i64 %.417.2, %12
  %.429.2 = add nsw i64 %arg.at, 12
  %.450.2 = getelementptr i8, ptr %arg.data, i64 %.429.2
  %.451.2 = load i8, ptr %.450.2, align 1
  %.413.3 = zext i8 %.451.2 to i64
  %13 = add i8 %.451.2, -48
  %or.cond174.2 = icmp ult i8 %13, 10
  br i1 %or.cond174.2, label %B424.else.if.3, label %B562

B424.else.if.3:
  %exitcond.not.3 = icmp eq i64 %.429.2, %7
  br i1 %exitcond.not.3, label %common.ret, label %B496.3

B496.3:
  %14 = mul nuw nsw i64 %.413.3, 100
  %.417.3 = add nsw i64 %.419.2, -4800
  %.419.3 = add nsw i64 %.417.3, %14
  %.429.3 = add nsw i64 %arg.at, 13
  %.450.3 = getelementptr i8, ptr %arg.data, i64 %.429.3
  %.451.3 = load i8, ptr %.450.3, align 1
  %.413.4 = zext i8 %.451.3 to i64
  %15 = add i8 %.451.3, -48
  %or.cond174.3 = icmp ult i8 %15, 10
  br i1 %or.cond174.3, label %B424.else.if.4, label %B562

B424.else.if.4:
  %exitcond.not.4 = icmp eq i64 %.429.3, %7
  br i1 %exitcond.not.4, label %common.ret, label %B496.4

B496.4:
  %16 = mul nuw nsw i64 %.413.4, 10
  %.417.4 = add nsw i64 %.419.3, -480
  %.419.4 = add nsw i64 %.417.4, %16
  %.429.4 = add nsw i64 %arg.at, 14
  %.450.4 = getelementptr i8, ptr %arg.data, i64 %.429.4
  %.451.4 = load i8, ptr %.450.4, align 1
  %.413.5 = zext i8 %.451.4 to i64
  %17 = add i8 %.451.4, -48
  %or.cond174.4 = icmp ult i8 %17, 10
  br i1 %or.cond174.4, label %B424.else.if.5, label %B562

B424.else.if.5:
  %exitcond.not.5 = icmp eq i64 %.429.4, %7
  br i1 %exitcond.not.5, label %common.ret, label %B496.5

B496.5:
  %.415.5 = add nsw i64 %.419.4, -48
  %.419.5 = add nsw i64 %.415.5, %.413.5
  %.429.5 = add nsw i64 %arg.at, 15
  %.450.5 = getelementptr i8, ptr %arg.data, i64 %.429.5
  %.451.5 = load i8, ptr %.450.5, align 1
  %18 = add i8 %.451.5, -48
  %or.cond174.5 = icmp ult i8 %18, 10
  br i1 %or.cond174.5, label %common.ret, label %B562

B562:
  %.419.lcssa = phi i64 [ %.417, %B496 ], [ %.419.1, %B496.1 ], [ %.419.2, %B496.2 ], [ %.419.3, %B496.3 ], [ %.419.4, %B496.4 ], [ %.419.5, %B496.5 ]
  %.429.lcssa = phi i64 [ %.429, %B496 ], [ %.429.1, %B496.1 ], [ %.429.2, %B496.2 ], [ %.429.3, %B496.3 ], [ %.429.4, %B496.4 ], [ %.429.5, %B496.5 ]
  %.96.1.i = icmp eq i64 %arg.end, %.429.lcssa
  br i1 %.96.1.i, label %common.ret, label %B596

B596:
  %at.7.0 = phi i64 [ %.429.lcssa, %B562 ], [ %.257, %B294 ], [ %.117, %B160 ]
  %second.2.0 = phi i64 [ %.167.1.i12, %B562 ], [ %.167.1.i12, %B294 ], [ 0, %B160 ]
  %fraction.3.0 = phi i64 [ %.419.lcssa, %B562 ], [ 0, %B294 ], [ 0, %B160 ]
  %.629 = mul nuw nsw i64 %storemerge.i, 3600
  %.633 = mul nuw nsw i64 %.167.1.i27, 60
  %.636 = add nuw nsw i64 %.633, %.629
  %.638 = add nuw nsw i64 %.636, %second.2.0
  %.641 = mul nuw nsw i64 %.638, 1000000
  %.643 = add nuw nsw i64 %.641, %fraction.3.0
  br label %common.ret

B0.endif:
  %storemerge.i = phi i64 [ -1000000, %B0 ], [ %.167.1.i, %B112.1.i ], [ -1000000, %B112.i ]
  %sunkaddr8 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr9 = getelementptr i8, ptr %sunkaddr8, i64 3
  %.137.i17 = load i8, ptr %sunkaddr9, align 1
  %.138.i18 = zext i8 %.137.i17 to i64
  %19 = add i8 %.137.i17, -58
  %or.cond.i19 = icmp ult i8 %19, -10
  br i1 %or.cond.i19, label %common.ret, label %B112.i20

B112.i20:
  %sunkaddr10 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr11 = getelementptr i8, ptr %sunkaddr10, i64 4
  %.137.1.i22 = load i8, ptr %sunkaddr11, align 1
  %.138.1.i25 = zext i8 %.137.1.i22 to i64
  %20 = add i8 %.137.1.i22, -58
  %or.cond.1.i23 = icmp ult i8 %20, -10
  br i1 %or.cond.1.i23, label %common.ret, label %B0.endif.endif

B0.endif.endif:
  %21 = mul nuw nsw i64 %.138.i18, 10
  %.164.1.i26 = add nsw i64 %21, -528
  %.167.1.i27 = add nsw i64 %.164.1.i26, %.138.1.i25
  %or.cond = icmp ugt i64 %storemerge.i, 23
  %.86 = icmp ugt i64 %.167.1.i27, 59
  %or.cond171 = select i1 %or.cond, i1 true, i1 %.86
  br i1 %or.cond171, label %common.ret, label %B126

B226.endif:
  %22 = mul nuw nsw i64 %.138.i3, 10
  %.164.1.i11 = add nsw i64 %22, -528
  %.167.1.i12 = add nsw i64 %.164.1.i11, %.138.1.i10
  %or.cond172 = icmp ugt i64 %.167.1.i12, 59
  br i1 %or.cond172, label %common.ret, label %B294
}

define internal i32 @compiled_known(ptr %retptr, ptr %excinfo, ptr %arg.data, i64 %arg.at, i64 %arg.end, ptr %arg.plan, ptr %arg.names, i64 %arg.fields, i64 %arg.expected) {
B0:
  %.27 = icmp slt i64 %arg.expected, %arg.fields
  br i1 %.27, label %B16, label %B120.endif

B16:
  %.idx.i = mul i64 %arg.expected, 48
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
  %scevgep75 = getelementptr i8, ptr %arg.data, i64 %3
  %4 = add i64 %.19.i, 1
  %scevgep77 = getelementptr i8, ptr %arg.names, i64 %4
  br label %B204.i

B204.i:
  %more.2.1.i = phi i64 [ %.94.i, %B226.i ], [ 0, %B204.preheader.i ]
  %exitcond.not.i = icmp eq i64 %2, %more.2.1.i
  br i1 %exitcond.not.i, label %B56, label %B226.i

B226.i:
  %.94.i = add nuw nsw i64 %more.2.1.i, 1
  %scevgep76 = getelementptr i8, ptr %scevgep75, i64 %more.2.1.i
  %.118.i = load i8, ptr %scevgep76, align 1
  %scevgep78 = getelementptr i8, ptr %scevgep77, i64 %more.2.1.i
  %.126.i = load i8, ptr %scevgep78, align 1
  %.127.i = icmp eq i8 %.118.i, %.126.i
  br i1 %.127.i, label %B204.i, label %_ZN11json_kernel8is_namedB44c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsBAK4JIagIAE8uint8_2axx8int64_2a8uint8_2ax.exit

_ZN11json_kernel8is_namedB44c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsBAK4JIagIAE8uint8_2axx8int64_2a8uint8_2ax.exit:
  %more.3.0.i = phi i64 [ 0, %B156.i ], [ 0, %B140.i ], [ %.94.i, %B226.i ]
  %.150.i.not = icmp eq i64 %more.3.0.i, %.22.i
  br i1 %.150.i.not, label %B56, label %B120.endif

common.ret:
  ret i32 0

B56:
  %.89 = add i64 %arg.at, 1
  %.92 = add i64 %.89, %.22.i
  store i64 %arg.expected, ptr %retptr, align 8
  %retptr.repack110 = getelementptr i8, ptr %retptr, i64 8
  store i64 %.92, ptr %retptr.repack110, align 8
  br label %common.ret

B152:
  %.196139142 = phi i64 [ %.203, %B150.backedge ], [ 0, %B152.preheader ]
  %.203 = add nuw nsw i64 %.196139142, 1
  %.idx.i11 = mul i64 %.196139142, 48
  %5 = getelementptr i8, ptr %arg.plan, i64 %.idx.i11
  %.18.i12 = getelementptr i8, ptr %5, i64 8
  %.19.i13 = load i64, ptr %.18.i12, align 8
  %.21.i14 = getelementptr i8, ptr %5, i64 16
  %.22.i15 = load i64, ptr %.21.i14, align 8
  %.32.not.i17 = icmp slt i64 %.22.i15, %.30.i16
  br i1 %.32.not.i17, label %B106.i19, label %B150.backedge

B106.i19:
  %.38.i20 = getelementptr i8, ptr %19, i64 %.22.i15
  %.39.i21 = load i8, ptr %.38.i20, align 1
  %.41.not.i22 = icmp eq i8 %.39.i21, 34
  br i1 %.41.not.i22, label %B140.i23, label %B150.backedge

B140.i23:
  %.65.i24 = icmp sgt i64 %.22.i15, 0
  br i1 %.65.i24, label %B156.i29, label %_ZN11json_kernel8is_namedB44c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsBAK4JIagIAE8uint8_2axx8int64_2a8uint8_2ax.exit47

B156.i29:
  %.79.i30 = load i8, ptr %19, align 1
  %.86.i31 = getelementptr i8, ptr %arg.names, i64 %.19.i13
  %.87.i32 = load i8, ptr %.86.i31, align 1
  %.88.i33 = icmp eq i8 %.79.i30, %.87.i32
  br i1 %.88.i33, label %B204.preheader.i34, label %_ZN11json_kernel8is_namedB44c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsBAK4JIagIAE8uint8_2axx8int64_2a8uint8_2ax.exit47

B204.preheader.i34:
  %6 = add nsw i64 %.22.i15, -1
  %scevgep73 = getelementptr i8, ptr %scevgep72, i64 %.19.i13
  br label %B204.i37

B204.i37:
  %more.2.1.i38 = phi i64 [ %.94.i41, %B226.i40 ], [ 0, %B204.preheader.i34 ]
  %exitcond.not.i39 = icmp eq i64 %6, %more.2.1.i38
  br i1 %exitcond.not.i39, label %B194, label %B226.i40

B226.i40:
  %.94.i41 = add nuw nsw i64 %more.2.1.i38, 1
  %scevgep71 = getelementptr i8, ptr %scevgep, i64 %more.2.1.i38
  %.118.i43 = load i8, ptr %scevgep71, align 1
  %scevgep74 = getelementptr i8, ptr %scevgep73, i64 %more.2.1.i38
  %.126.i45 = load i8, ptr %scevgep74, align 1
  %.127.i46 = icmp eq i8 %.118.i43, %.126.i45
  br i1 %.127.i46, label %B204.i37, label %_ZN11json_kernel8is_namedB44c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsBAK4JIagIAE8uint8_2axx8int64_2a8uint8_2ax.exit47

_ZN11json_kernel8is_namedB44c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsBAK4JIagIAE8uint8_2axx8int64_2a8uint8_2ax.exit47:
  %more.3.0.i26 = phi i64 [ 0, %B156.i29 ], [ 0, %B140.i23 ], [ %.94.i41, %B226.i40 ]
  %.150.i27.not = icmp eq i64 %more.3.0.i26, %.22.i15
  br i1 %.150.i27.not, label %B194, label %B150.backedge

B194:
  %.289 = add i64 %arg.at, 1
  %.292 = add i64 %.289, %.22.i15
  store i64 %.196139142, ptr %retptr, align 8
  %retptr.repack118 = getelementptr i8, ptr %retptr, i64 8
  store i64 %.292, ptr %retptr.repack118, align 8
  br label %common.ret

B264:
  %.323 = icmp sgt i64 %arg.end, %arg.at
  br i1 %.323, label %B276.preheader, label %B440

B276.preheader:
  br label %B276

B276:
  %at.2.0 = phi i64 [ %.463, %B418 ], [ %arg.at, %B276.preheader ]
  %.332 = getelementptr i8, ptr %arg.data, i64 %at.2.0
  %.333 = load i8, ptr %.332, align 1
  %7 = zext i8 %.333 to i32
  %.340 = icmp eq i8 %.333, 34
  br i1 %.340, label %B310, label %B324

B310:
  %.349 = add nsw i64 %at.2.0, 1
  store i64 -1, ptr %retptr, align 8
  %retptr.repack115 = getelementptr i8, ptr %retptr, i64 8
  store i64 %.349, ptr %retptr.repack115, align 8
  br label %common.ret

B324:
  %8 = trunc i32 %7 to i8
  %9 = trunc i32 %7 to i8
  %.363 = icmp ult i8 %9, 32
  %.366 = icmp eq i8 %8, 92
  %or.cond = or i1 %.363, %.366
  br i1 %or.cond, label %B348, label %B352

B348:
  tail call void @llvm.memset.p0.i64(ptr align 8 dereferenceable(16) %retptr, i8 -1, i64 16, i1 false)
  br label %common.ret

B352:
  %10 = trunc i32 %7 to i8
  %.391 = icmp sgt i8 %10, -1
  br i1 %.391, label %B418, label %B368

B368:
  %11 = trunc i32 %7 to i8
  %12 = add nsw i8 %11, 11
  %or.cond.i = icmp ult i8 %12, -51
  br i1 %or.cond.i, label %B414, label %B54.i

B54.i:
  %13 = trunc i32 %7 to i8
  %14 = trunc i32 %7 to i8
  %.39.i48 = icmp ugt i8 %14, -33
  %.46.i = icmp ult i8 %13, -16
  %spec.select.i = select i1 %.46.i, i64 3, i64 4
  %"$phi88.0.3.0.i" = select i1 %.39.i48, i64 %spec.select.i, i64 2
  %.62.i = sub nsw i64 %arg.end, %at.2.0
  %.66.i = icmp sgt i64 %"$phi88.0.3.0.i", %.62.i
  br i1 %.66.i, label %B414, label %B112.i

B112.i:
  switch i32 %7, label %B180.i [
    i32 224, label %B218.peel.i
    i32 240, label %B182.endif.fold.split.i
    i32 237, label %B182.endif.fold.split104.i
    i32 244, label %B182.endif.fold.split105.i
  ]

B180.i:
  br label %B218.peel.i

B218.i:
  %15 = trunc i32 %7 to i8
  %16 = icmp ult i8 %15, -16
  %sunkaddr = getelementptr i8, ptr %arg.data, i64 %at.2.0
  %sunkaddr80 = getelementptr i8, ptr %sunkaddr, i64 2
  %.256.i = load i8, ptr %sunkaddr80, align 1
  %or.cond106.i = icmp sgt i8 %.256.i, -65
  %brmerge1.i = or i1 %16, %or.cond106.i
  %.mux2.i = select i1 %or.cond106.i, i64 0, i64 %spec.select.i
  br i1 %brmerge1.i, label %B400, label %B218.1.i

B218.1.i:
  %sunkaddr82 = getelementptr i8, ptr %arg.data, i64 %at.2.0
  %sunkaddr83 = getelementptr i8, ptr %sunkaddr82, i64 3
  %.256.1.i = load i8, ptr %sunkaddr83, align 1
  %or.cond106.1.i = icmp sgt i8 %.256.1.i, -65
  br i1 %or.cond106.1.i, label %B414, label %B418

B182.endif.fold.split.i:
  br label %B218.peel.i

B182.endif.fold.split104.i:
  br label %B218.peel.i

B182.endif.fold.split105.i:
  br label %B218.peel.i

B218.peel.i:
  %"$phi146.0.3.095.i" = phi i64 [ 128, %B182.endif.fold.split104.i ], [ 144, %B182.endif.fold.split.i ], [ 128, %B180.i ], [ 160, %B112.i ], [ 128, %B182.endif.fold.split105.i ]
  %"$phi182.0.3.0.i" = phi i64 [ 159, %B182.endif.fold.split104.i ], [ 191, %B182.endif.fold.split.i ], [ 191, %B180.i ], [ 191, %B112.i ], [ 143, %B182.endif.fold.split105.i ]
  %17 = trunc i32 %7 to i8
  %18 = icmp ult i8 %17, -32
  %sunkaddr84 = getelementptr i8, ptr %arg.data, i64 %at.2.0
  %sunkaddr85 = getelementptr i8, ptr %sunkaddr84, i64 1
  %.256.peel.i = load i8, ptr %sunkaddr85, align 1
  %.257.peel.i = zext i8 %.256.peel.i to i64
  %.264.peel.i = icmp ugt i64 %"$phi146.0.3.095.i", %.257.peel.i
  %.270.peel.i = icmp ult i64 %"$phi182.0.3.0.i", %.257.peel.i
  %or.cond106.peel.i = select i1 %.264.peel.i, i1 true, i1 %.270.peel.i
  %brmerge.i = or i1 %18, %or.cond106.peel.i
  %.mux.i = select i1 %or.cond106.peel.i, i64 0, i64 %"$phi88.0.3.0.i"
  br i1 %brmerge.i, label %B400, label %B218.i

B400:
  %"$phi88.0.3.0.sink.i" = phi i64 [ %.mux.i, %B218.peel.i ], [ %.mux2.i, %B218.i ]
  %.437 = icmp eq i64 %"$phi88.0.3.0.sink.i", 0
  br i1 %.437, label %B414, label %B418

B414:
  tail call void @llvm.memset.p0.i64(ptr align 8 dereferenceable(16) %retptr, i8 -1, i64 16, i1 false)
  br label %common.ret

B418:
  %"$phi400.0.2.199" = phi i64 [ %"$phi88.0.3.0.sink.i", %B400 ], [ 1, %B352 ], [ 4, %B218.1.i ]
  %.463 = add nsw i64 %"$phi400.0.2.199", %at.2.0
  %.469 = icmp slt i64 %.463, %arg.end
  br i1 %.469, label %B276, label %B440

B440:
  tail call void @llvm.memset.p0.i64(ptr align 8 dereferenceable(16) %retptr, i8 -1, i64 16, i1 false)
  br label %common.ret

B120.endif:
  %.190141.not = icmp slt i64 %arg.fields, 1
  br i1 %.190141.not, label %B264, label %B152.preheader

B152.preheader:
  %.30.i16 = sub nsw i64 %arg.end, %arg.at
  %19 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %scevgep72 = getelementptr i8, ptr %arg.names, i64 1
  %20 = add i64 %arg.at, 1
  %scevgep = getelementptr i8, ptr %arg.data, i64 %20
  br label %B152

B150.backedge:
  %exitcond.not = icmp eq i64 %arg.fields, %.203
  br i1 %exitcond.not, label %B264, label %B152
}

define internal i32 @compiled_named(ptr %retptr, ptr %excinfo, ptr %arg.data, i64 %arg.at, i64 %arg.end, ptr %arg.out) {
B0:
  %.75 = alloca [2 x i64], align 8
  %excinfo.2 = alloca ptr, align 8
  store ptr null, ptr %excinfo.2, align 8
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
  %.52 = getelementptr i8, ptr %arg.data, i64 %at.3.0.i
  %.53 = load i8, ptr %.52, align 1
  %.55.not = icmp eq i8 %.53, 34
  br i1 %.55.not, label %B78, label %B74

common.ret:
  %common.ret.op = phi i32 [ 0, %B74 ], [ 0, %B142 ], [ 0, %B228 ], [ %.79, %B78.if.if ]
  ret i32 %common.ret.op

B74:
  store i64 -1, ptr %retptr, align 8
  br label %common.ret

B78:
  %.69 = add nsw i64 %at.3.0.i, 1
  call void @llvm.memset.p0.i64(ptr align 8 dereferenceable(16) %.75, i8 0, i64 16, i1 false)
  %.79 = call i32 @compiled_text(ptr %.75, ptr %excinfo.2, ptr %arg.data, i64 %.69, i64 %arg.end, ptr %arg.out, i64 0, i64 0)
  %.89.fca.0.load = load i64, ptr %.75, align 8
  %cond = icmp eq i32 %.79, 0
  br i1 %cond, label %B78.endif, label %B78.if.if

B142:
  store i64 -1, ptr %retptr, align 8
  br label %common.ret

B146:
  %.19.i1 = icmp slt i64 %.89.fca.0.load, %arg.end
  br i1 %.19.i1, label %B16.i3, label %B146.endif

B16.i3:
  %.29.i4 = getelementptr i8, ptr %arg.data, i64 %.89.fca.0.load
  %.30.i5 = load i8, ptr %.29.i4, align 1
  %2 = zext i8 %.30.i5 to i32
  switch i32 %2, label %B146.endif [
    i32 32, label %B112.preheader.i6
    i32 10, label %B112.preheader.i6
    i32 13, label %B112.preheader.i6
    i32 9, label %B112.preheader.i6
  ]

B112.preheader.i6:
  %.7242.i7 = add nuw nsw i64 %.89.fca.0.load, 1
  %.8343.i8 = icmp ult i64 %.7242.i7, %arg.end
  br i1 %.8343.i8, label %B134.i9.preheader, label %B146.endif

B134.i9.preheader:
  br label %B134.i9

B134.i9:
  %.7244.i10 = phi i64 [ %.72.i14, %B231.i13 ], [ %.7242.i7, %B134.i9.preheader ]
  %.89.i11 = getelementptr i8, ptr %arg.data, i64 %.7244.i10
  %.90.i12 = load i8, ptr %.89.i11, align 1
  %3 = zext i8 %.90.i12 to i32
  switch i32 %3, label %B146.endif.loopexit [
    i32 32, label %B231.i13
    i32 10, label %B231.i13
    i32 13, label %B231.i13
    i32 9, label %B231.i13
  ]

B231.i13:
  %.72.i14 = add i64 %.7244.i10, 1
  %exitcond.not.i15 = icmp eq i64 %arg.end, %.72.i14
  br i1 %exitcond.not.i15, label %B228, label %B134.i9

B192:
  %.164 = getelementptr i8, ptr %arg.data, i64 %at.3.0.i2
  %.165 = load i8, ptr %.164, align 1
  %.169 = icmp eq i8 %.165, 58
  %.172 = add nsw i64 %at.3.0.i2, 1
  %spec.select = select i1 %.169, i64 %.172, i64 -1
  br label %B228

B228:
  %"$phi228.0.2.0" = phi i64 [ %spec.select, %B192 ], [ -1, %B146.endif ], [ -1, %B231.i13 ]
  store i64 %"$phi228.0.2.0", ptr %retptr, align 8
  br label %common.ret

B0.endif.loopexit:
  br label %B0.endif

B0.endif:
  %at.3.0.i = phi i64 [ %arg.at, %B16.i ], [ %arg.at, %B0 ], [ %.7242.i, %B112.preheader.i ], [ %.7244.i, %B0.endif.loopexit ]
  %.48.not = icmp slt i64 %at.3.0.i, %arg.end
  br i1 %.48.not, label %B50, label %B74

B78.endif:
  %.113 = icmp slt i64 %.89.fca.0.load, 0
  br i1 %.113, label %B142, label %B146

B78.if.if:
  %.87 = icmp sgt i32 %.79, 0
  %.80 = load ptr, ptr %excinfo.2, align 8
  %.88 = select i1 %.87, ptr %.80, ptr undef
  store ptr %.88, ptr %excinfo, align 8
  br label %common.ret

B146.endif.loopexit:
  br label %B146.endif

B146.endif:
  %at.3.0.i2 = phi i64 [ %.89.fca.0.load, %B16.i3 ], [ %.89.fca.0.load, %B146 ], [ %.7242.i7, %B112.preheader.i6 ], [ %.7244.i10, %B146.endif.loopexit ]
  %.158 = icmp slt i64 %at.3.0.i2, %arg.end
  br i1 %.158, label %B192, label %B228
}

define internal i32 @compiled_parse(ptr %retptr, ptr %excinfo, ptr %arg.data, ptr %arg.ends, i64 %arg.rows, i64 %arg.fields, i64 %arg.needed, ptr %arg.plan, ptr %arg.names, ptr %arg.ints, ptr %arg.reals, ptr %arg.flags, ptr %arg.text_ends, ptr %arg.texts, i64 %arg.room, ptr %arg.valid, ptr %arg.doubts, ptr %arg.hard, ptr %arg.used, ptr %arg.powers) {
B0.endif:
  %.225 = alloca i8, align 1
  %excinfo.1 = alloca ptr, align 8
  store ptr null, ptr %excinfo.1, align 8
  %.143141.not = icmp slt i64 %arg.rows, 1
  br i1 %.143141.not, label %B460, label %B40.lr.ph

B40.lr.ph:
  %.439 = add nuw nsw i64 %arg.rows, 1
  br label %B40

B38.loopexit:
  %scevgep19 = getelementptr i8, ptr %lsr.iv18, i64 1
  %exitcond154.not = icmp eq i64 %.156, %arg.rows
  br i1 %exitcond154.not, label %B460, label %B40

B40:
  %lsr.iv18 = phi ptr [ %arg.valid, %B40.lr.ph ], [ %scevgep19, %B38.loopexit ]
  %doubtful.2.0146 = phi i64 [ 0, %B40.lr.ph ], [ %doubtful.3.1, %B38.loopexit ]
  %.149134144 = phi i64 [ 0, %B40.lr.ph ], [ %.156, %B38.loopexit ]
  %.156 = add nuw nsw i64 %.149134144, 1
  %.190 = getelementptr i32, ptr %arg.ends, i64 %.149134144
  %.191 = load i32, ptr %.190, align 4
  %.192 = sext i32 %.191 to i64
  %.197 = getelementptr i8, ptr %.190, i64 4
  %.198 = load i32, ptr %.197, align 4
  %.199 = sext i32 %.198 to i64
  %sunkaddr = mul i64 %arg.fields, 8
  %sunkaddr23 = getelementptr i8, ptr %arg.used, i64 %sunkaddr
  %.204 = load i64, ptr %sunkaddr23, align 8
  store i8 0, ptr %.225, align 1
  %.229 = call i32 @compiled_filled_row(ptr %.225, ptr %excinfo.1, ptr %arg.data, i64 %.192, i64 %.199, i64 %.149134144, i64 %arg.rows, i64 %arg.fields, i64 %arg.needed, ptr %arg.plan, ptr %arg.names, ptr %arg.ints, ptr %arg.reals, ptr %arg.flags, ptr %arg.texts, i64 %arg.room, ptr %arg.valid, ptr %arg.hard, ptr %arg.used, ptr %arg.powers)
  %.230 = load ptr, ptr %excinfo.1, align 8
  %.239 = load i8, ptr %.225, align 1
  %.242.not = icmp eq i8 %.239, 0
  br i1 %.242.not, label %B40.endif.thread, label %B40.endif

B176:
  %.264 = add nsw i64 %doubtful.2.0146, 1
  %.272 = getelementptr i8, ptr %arg.doubts, i64 %.149134144
  store i8 1, ptr %.272, align 1
  %sunkaddr24 = mul i64 %arg.fields, 8
  %sunkaddr25 = getelementptr i8, ptr %arg.used, i64 %sunkaddr24
  store i64 %.204, ptr %sunkaddr25, align 8
  br label %B206.endif

B238:
  %lsr.iv22 = phi i64 [ %arg.fields, %B238.preheader ], [ %lsr.iv.next, %B456 ]
  %lsr.iv20 = phi ptr [ %lsr.iv18, %B238.preheader ], [ %scevgep21, %B456 ]
  %lsr.iv = phi ptr [ %arg.plan, %B238.preheader ], [ %scevgep, %B456 ]
  %0 = icmp eq i8 %.239, 0
  br i1 %0, label %B266, label %B266.thread

B266:
  store i8 0, ptr %lsr.iv20, align 1
  %.424 = load i64, ptr %lsr.iv, align 8
  %.425 = icmp eq i64 %.424, 0
  br i1 %.425, label %B406, label %B456

B266.thread:
  %.424158 = load i64, ptr %lsr.iv, align 8
  %.425159 = icmp eq i64 %.424158, 0
  br i1 %.425159, label %B332.B428_crit_edge, label %B456

B332.B428_crit_edge:
  %scevgep16 = getelementptr i8, ptr %lsr.iv, i64 40
  %.434163 = load i64, ptr %scevgep16, align 8
  %.441164 = mul nsw i64 %.434163, %.439
  %.443165 = add nsw i64 %.441164, %.149134144
  %.461.phi.trans.insert = getelementptr i64, ptr %arg.used, i64 %.434163
  %.462.pre = load i64, ptr %.461.phi.trans.insert, align 8
  %1 = trunc i64 %.462.pre to i32
  br label %B428

B406:
  %scevgep17 = getelementptr i8, ptr %lsr.iv, i64 40
  %.434 = load i64, ptr %scevgep17, align 8
  %.441 = mul nsw i64 %.434, %.439
  %.443 = add nsw i64 %.441, %.149134144
  %.451 = getelementptr i32, ptr %arg.text_ends, i64 %.443
  %.452 = load i32, ptr %.451, align 4
  %.455 = sext i32 %.452 to i64
  %.456 = getelementptr i64, ptr %arg.used, i64 %.434
  store i64 %.455, ptr %.456, align 8
  br label %B428

B428:
  %.443167 = phi i64 [ %.443165, %B332.B428_crit_edge ], [ %.443, %B406 ]
  %.462 = phi i32 [ %1, %B332.B428_crit_edge ], [ %.452, %B406 ]
  %2 = getelementptr i32, ptr %arg.text_ends, i64 %.443167
  %.471 = getelementptr i8, ptr %2, i64 4
  store i32 %.462, ptr %.471, align 4
  br label %B456

B456:
  %scevgep = getelementptr i8, ptr %lsr.iv, i64 48
  %scevgep21 = getelementptr i8, ptr %lsr.iv20, i64 %arg.rows
  %lsr.iv.next = add i64 %lsr.iv22, -1
  %exitcond.not = icmp eq i64 %lsr.iv.next, 0
  br i1 %exitcond.not, label %B38.loopexit, label %B238

common.ret:
  %common.ret.op = phi i32 [ 0, %B460 ], [ %.229, %B40.endif.if.if ]
  ret i32 %common.ret.op

B460:
  %doubtful.2.0.lcssa = phi i64 [ 0, %B0.endif ], [ %doubtful.3.1, %B38.loopexit ]
  store i64 %doubtful.2.0.lcssa, ptr %retptr, align 8
  br label %common.ret

B40.endif:
  %3 = icmp eq i32 %.229, 0
  br i1 %3, label %B206.endif, label %B40.endif.if.if

B40.endif.thread:
  %4 = icmp eq i32 %.229, 0
  br i1 %4, label %B176, label %B40.endif.if.if

B40.endif.if.if:
  %.237.le = icmp sgt i32 %.229, 0
  %.238.le = select i1 %.237.le, ptr %.230, ptr undef
  store ptr %.238.le, ptr %excinfo, align 8
  br label %common.ret

B206.endif:
  %doubtful.3.1 = phi i64 [ %.264, %B176 ], [ %doubtful.2.0146, %B40.endif ]
  %5 = icmp slt i64 %arg.fields, 1
  br i1 %5, label %B38.loopexit, label %B238.preheader

B238.preheader:
  br label %B238
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
  %sunkaddr7 = getelementptr i8, ptr %sunkaddr, i64 1
  %.148.1.i = load i8, ptr %sunkaddr7, align 1
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
  %sunkaddr8 = getelementptr i8, ptr %arg.data, i64 %.61
  %sunkaddr9 = getelementptr i8, ptr %sunkaddr8, i64 2
  %.148.2.i = load i8, ptr %sunkaddr9, align 1
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
  %sunkaddr10 = getelementptr i8, ptr %arg.data, i64 %.61
  %sunkaddr11 = getelementptr i8, ptr %sunkaddr10, i64 3
  %.148.3.i = load i8, ptr %sunkaddr11, align 1
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

define internal i32 @compiled_member(ptr %retptr, ptr %excinfo, ptr %arg.data, i64 %arg.at, i64 %arg.end, ptr %arg.plan, ptr %arg.names, i64 %arg.fields, i64 %arg.expected) {
B0:
  %.75 = alloca [2 x i64], align 8
  %excinfo.1 = alloca ptr, align 8
  %.27.not = icmp slt i64 %arg.at, %arg.end
  br i1 %.27.not, label %B16, label %B40

B16:
  %.31 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %.32 = load i8, ptr %.31, align 1
  %.34.not = icmp eq i8 %.32, 34
  br i1 %.34.not, label %B44, label %B40

common.ret:
  %common.ret.op = phi i32 [ 0, %B40 ], [ 0, %B110 ], [ 0, %B184 ], [ 0, %B188.endif ], [ %.79, %B44.if.if ]
  ret i32 %common.ret.op

B40:
  tail call void @llvm.memset.p0.i64(ptr align 8 dereferenceable(16) %retptr, i8 -1, i64 16, i1 false)
  br label %common.ret

B44:
  %.66 = add nsw i64 %arg.at, 1
  call void @llvm.memset.p0.i64(ptr align 8 dereferenceable(16) %.75, i8 0, i64 16, i1 false)
  %.79 = call i32 @compiled_known(ptr %.75, ptr %excinfo.1, ptr %arg.data, i64 %.66, i64 %arg.end, ptr %arg.plan, ptr %arg.names, i64 %arg.fields, i64 %arg.expected)
  %.89.fca.0.load = load i64, ptr %.75, align 8
  %sunkaddr = getelementptr i8, ptr %.75, i64 8
  %.89.fca.1.load = load i64, ptr %sunkaddr, align 8
  %cond = icmp eq i32 %.79, 0
  br i1 %cond, label %B44.endif, label %B44.if.if

B110:
  tail call void @llvm.memset.p0.i64(ptr align 8 dereferenceable(16) %retptr, i8 -1, i64 16, i1 false)
  br label %common.ret

B114:
  %.19.i = icmp slt i64 %.89.fca.1.load, %arg.end
  br i1 %.19.i, label %B16.i, label %B114.endif

B16.i:
  %.29.i = getelementptr i8, ptr %arg.data, i64 %.89.fca.1.load
  %.30.i = load i8, ptr %.29.i, align 1
  %0 = zext i8 %.30.i to i32
  switch i32 %0, label %B114.endif [
    i32 32, label %B112.preheader.i
    i32 10, label %B112.preheader.i
    i32 13, label %B112.preheader.i
    i32 9, label %B112.preheader.i
  ]

B112.preheader.i:
  %.7242.i = add nuw nsw i64 %.89.fca.1.load, 1
  %.8343.i = icmp ult i64 %.7242.i, %arg.end
  br i1 %.8343.i, label %B134.i.preheader, label %B114.endif

B134.i.preheader:
  br label %B134.i

B134.i:
  %.7244.i = phi i64 [ %.72.i, %B231.i ], [ %.7242.i, %B134.i.preheader ]
  %.89.i = getelementptr i8, ptr %arg.data, i64 %.7244.i
  %.90.i = load i8, ptr %.89.i, align 1
  %1 = zext i8 %.90.i to i32
  switch i32 %1, label %B114.endif.loopexit [
    i32 32, label %B231.i
    i32 10, label %B231.i
    i32 13, label %B231.i
    i32 9, label %B231.i
  ]

B231.i:
  %.72.i = add i64 %.7244.i, 1
  %exitcond.not.i = icmp eq i64 %arg.end, %.72.i
  br i1 %exitcond.not.i, label %B184, label %B134.i

B160:
  %.187 = getelementptr i8, ptr %arg.data, i64 %at.3.0.i
  %.188 = load i8, ptr %.187, align 1
  %.190.not = icmp eq i8 %.188, 58
  br i1 %.190.not, label %B188, label %B184

B184:
  tail call void @llvm.memset.p0.i64(ptr align 8 dereferenceable(16) %retptr, i8 -1, i64 16, i1 false)
  br label %common.ret

B188:
  %.216 = add nsw i64 %at.3.0.i, 1
  %.19.i1 = icmp slt i64 %.216, %arg.end
  br i1 %.19.i1, label %B16.i3, label %B188.endif

B16.i3:
  %.29.i4 = getelementptr i8, ptr %arg.data, i64 %.216
  %.30.i5 = load i8, ptr %.29.i4, align 1
  %2 = zext i8 %.30.i5 to i32
  switch i32 %2, label %B188.endif [
    i32 32, label %B112.preheader.i6
    i32 10, label %B112.preheader.i6
    i32 13, label %B112.preheader.i6
    i32 9, label %B112.preheader.i6
  ]

B112.preheader.i6:
  %.7242.i7 = add nsw i64 %at.3.0.i, 2
  %.8343.i8 = icmp slt i64 %.7242.i7, %arg.end
  br i1 %.8343.i8, label %B134.i9.preheader, label %B188.endif

B134.i9.preheader:
  br label %B134.i9

B134.i9:
  %.7244.i10 = phi i64 [ %.72.i14, %B231.i13 ], [ %.7242.i7, %B134.i9.preheader ]
  %.89.i11 = getelementptr i8, ptr %arg.data, i64 %.7244.i10
  %.90.i12 = load i8, ptr %.89.i11, align 1
  %3 = zext i8 %.90.i12 to i32
  switch i32 %3, label %B134.i9.B188.endif.loopexit_crit_edge [
    i32 32, label %B231.i13
    i32 10, label %B231.i13
    i32 13, label %B231.i13
    i32 9, label %B231.i13
  ]

B231.i13:
  %.72.i14 = add i64 %.7244.i10, 1
  %exitcond.not.i15 = icmp eq i64 %arg.end, %.72.i14
  br i1 %exitcond.not.i15, label %B188.endif, label %B134.i9

B44.endif:
  %.124 = icmp slt i64 %.89.fca.1.load, 0
  br i1 %.124, label %B110, label %B114

B44.if.if:
  store ptr null, ptr %excinfo, align 8
  br label %common.ret

B114.endif.loopexit:
  br label %B114.endif

B114.endif:
  %at.3.0.i = phi i64 [ %.89.fca.1.load, %B16.i ], [ %.89.fca.1.load, %B114 ], [ %.7242.i, %B112.preheader.i ], [ %.7244.i, %B114.endif.loopexit ]
  %.183.not = icmp slt i64 %at.3.0.i, %arg.end
  br i1 %.183.not, label %B160, label %B184

B134.i9.B188.endif.loopexit_crit_edge:
  br label %B188.endif

B188.endif:
  %at.3.0.i2 = phi i64 [ %.216, %B16.i3 ], [ %.216, %B188 ], [ %.7242.i7, %B112.preheader.i6 ], [ %.7244.i10, %B134.i9.B188.endif.loopexit_crit_edge ], [ %arg.end, %B231.i13 ]
  %.252 = icmp slt i64 %at.3.0.i2, %arg.end
  %"$phi248.1.2.0" = select i1 %.252, i64 %at.3.0.i2, i64 -1
  store i64 %.89.fca.0.load, ptr %retptr, align 8
  %retptr.repack44 = getelementptr i8, ptr %retptr, i64 8
  store i64 %"$phi248.1.2.0", ptr %retptr.repack44, align 8
  br label %common.ret
}

define internal i32 @compiled_moment(ptr %retptr, ptr %excinfo, ptr %arg.data, i64 %arg.at, i64 %arg.end, i64 %arg.zoned) {
B0:
  %.241 = alloca [2 x i64], align 8
  %excinfo.5 = alloca ptr, align 8
  %.327 = alloca [2 x i64], align 8
  %excinfo.6 = alloca ptr, align 8
  %.18 = sub nsw i64 %arg.end, %arg.at
  %.19 = icmp slt i64 %.18, 17
  br i1 %.19, label %B82, label %B22

B22:
  %0 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %.24 = getelementptr i8, ptr %0, i64 4
  %.25 = load i8, ptr %.24, align 1
  %.27.not = icmp eq i8 %.25, 45
  br i1 %.27.not, label %B52, label %B82

B52:
  %sunkaddr = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr1 = getelementptr i8, ptr %sunkaddr, i64 7
  %.33 = load i8, ptr %sunkaddr1, align 1
  %.35.not = icmp eq i8 %.33, 45
  br i1 %.35.not, label %B86, label %B82

common.ret:
  %common.ret.op = phi i32 [ 0, %B82 ], [ 0, %B146 ], [ 0, %B208 ], [ 0, %B398 ], [ 0, %B474 ], [ 0, %B502 ], [ 0, %B506 ], [ %.331, %B410.if.if ], [ %.245, %B212.endif.endif.endif.if.if ]
  ret i32 %common.ret.op

B82:
  store i64 0, ptr %retptr, align 8
  %retptr.repack91 = getelementptr i8, ptr %retptr, i64 8
  store i64 -1, ptr %retptr.repack91, align 8
  br label %common.ret

B86:
  %sunkaddr2 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr3 = getelementptr i8, ptr %sunkaddr2, i64 10
  %.59 = load i8, ptr %sunkaddr3, align 1
  %1 = zext i8 %.59 to i32
  switch i32 %1, label %B146 [
    i32 84, label %B150
    i32 32, label %B150
  ]

B146:
  store i64 0, ptr %retptr, align 8
  %retptr.repack90 = getelementptr i8, ptr %retptr, i64 8
  store i64 -1, ptr %retptr.repack90, align 8
  br label %common.ret

B150:
  %sunkaddr4 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %.137.i = load i8, ptr %sunkaddr4, align 1
  %.138.i = zext i8 %.137.i to i64
  %2 = add i8 %.137.i, -58
  %or.cond.i = icmp ult i8 %2, -10
  br i1 %or.cond.i, label %B208, label %B112.i

B112.i:
  %sunkaddr5 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr6 = getelementptr i8, ptr %sunkaddr5, i64 1
  %.137.1.i = load i8, ptr %sunkaddr6, align 1
  %.138.1.i = zext i8 %.137.1.i to i64
  %3 = add i8 %.137.1.i, -58
  %or.cond.1.i = icmp ult i8 %3, -10
  br i1 %or.cond.1.i, label %B208, label %B112.1.i

B112.1.i:
  %sunkaddr7 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr8 = getelementptr i8, ptr %sunkaddr7, i64 2
  %.137.2.i = load i8, ptr %sunkaddr8, align 1
  %.138.2.i = zext i8 %.137.2.i to i64
  %4 = add i8 %.137.2.i, -58
  %or.cond.2.i = icmp ult i8 %4, -10
  br i1 %or.cond.2.i, label %B208, label %B112.2.i

B112.2.i:
  %sunkaddr9 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr10 = getelementptr i8, ptr %sunkaddr9, i64 3
  %.137.3.i = load i8, ptr %sunkaddr10, align 1
  %.138.3.i = zext i8 %.137.3.i to i64
  %5 = add i8 %.137.3.i, -58
  %or.cond.3.i = icmp ult i8 %5, -10
  br i1 %or.cond.3.i, label %B208, label %B150.endif

B208:
  store i64 0, ptr %retptr, align 8
  %retptr.repack89 = getelementptr i8, ptr %retptr, i64 8
  store i64 -1, ptr %retptr.repack89, align 8
  br label %common.ret

B212:
  %sunkaddr11 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr12 = getelementptr i8, ptr %sunkaddr11, i64 5
  %.137.i1 = load i8, ptr %sunkaddr12, align 1
  %.138.i2 = zext i8 %.137.i1 to i64
  %6 = add i8 %.137.i1, -58
  %or.cond.i3 = icmp ult i8 %6, -10
  br i1 %or.cond.i3, label %B212.endif, label %B112.i4

B112.i4:
  %sunkaddr13 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr14 = getelementptr i8, ptr %sunkaddr13, i64 6
  %.137.1.i6 = load i8, ptr %sunkaddr14, align 1
  %.138.1.i9 = zext i8 %.137.1.i6 to i64
  %7 = add i8 %.137.1.i6, -58
  %or.cond.1.i7 = icmp ult i8 %7, -10
  br i1 %or.cond.1.i7, label %B212.endif, label %B112.1.i8

B112.1.i8:
  %8 = mul nuw nsw i64 %.138.i2, 10
  %.164.1.i10 = add nsw i64 %8, -528
  %.167.1.i11 = add nsw i64 %.164.1.i10, %.138.1.i9
  br label %B212.endif

B398:
  store i64 0, ptr %retptr, align 8
  %retptr.repack88 = getelementptr i8, ptr %retptr, i64 8
  store i64 -1, ptr %retptr.repack88, align 8
  br label %common.ret

B402:
  %.315.not = icmp eq i64 %arg.zoned, 0
  br i1 %.315.not, label %B478, label %B410

B410:
  %.331 = call i32 @compiled_zone(ptr %.327, ptr %excinfo.6, ptr %arg.data, i64 %.255.fca.1.load, i64 %arg.end)
  %cond33 = icmp eq i32 %.331, 0
  br i1 %cond33, label %B410.endif, label %B410.if.if

B474:
  store i64 0, ptr %retptr, align 8
  %retptr.repack87 = getelementptr i8, ptr %retptr, i64 8
  store i64 -1, ptr %retptr.repack87, align 8
  br label %common.ret

B478:
  %at.3.0 = phi i64 [ %.341.fca.1.load, %B410.endif ], [ %.255.fca.1.load, %B402 ]
  %ahead.2.0 = phi i64 [ %.341.fca.0.load, %B410.endif ], [ 0, %B402 ]
  %.418 = getelementptr i8, ptr %arg.data, i64 %at.3.0
  %.419 = load i8, ptr %.418, align 1
  %.423.not = icmp eq i8 %.419, 34
  br i1 %.423.not, label %B506, label %B502

B502:
  store i64 0, ptr %retptr, align 8
  %retptr.repack86 = getelementptr i8, ptr %retptr, i64 8
  store i64 -1, ptr %retptr.repack86, align 8
  br label %common.ret

B506:
  %.444 = mul nsw i64 %.447.sink.i, 86400000000
  %.448 = add nsw i64 %.255.fca.0.load, %.444
  %.452.neg = mul i64 %ahead.2.0, -60000000
  %.455 = add i64 %.448, %.452.neg
  %.457 = add nuw nsw i64 %at.3.0, 1
  store i64 %.455, ptr %retptr, align 8
  %retptr.repack84 = getelementptr i8, ptr %retptr, i64 8
  store i64 %.457, ptr %retptr.repack84, align 8
  br label %common.ret

B150.endif:
  %9 = mul nuw nsw i64 %.138.i, 10
  %.164.1.i = add nsw i64 %9, -528
  %.167.1.i = add nsw i64 %.164.1.i, %.138.1.i
  %.162.2.i = mul nuw nsw i64 %.167.1.i, 10
  %.164.2.i = add nsw i64 %.162.2.i, -48
  %.167.2.i = add nsw i64 %.164.2.i, %.138.2.i
  %.162.3.i = mul nuw nsw i64 %.167.2.i, 10
  %.164.3.i = add nsw i64 %.162.3.i, -48
  %.167.3.i = add nsw i64 %.164.3.i, %.138.3.i
  %10 = add nsw i64 %.167.3.i, -9999
  %or.cond = icmp ult i64 %10, -9997
  br i1 %or.cond, label %B208, label %B212

B212.endif:
  %storemerge.i12 = phi i64 [ -1000000, %B212 ], [ %.167.1.i11, %B112.1.i8 ], [ -1000000, %B112.i4 ]
  %sunkaddr15 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr16 = getelementptr i8, ptr %sunkaddr15, i64 8
  %.137.i13 = load i8, ptr %sunkaddr16, align 1
  %.138.i14 = zext i8 %.137.i13 to i64
  %11 = add i8 %.137.i13, -58
  %or.cond.i15 = icmp ult i8 %11, -10
  br i1 %or.cond.i15, label %B212.endif.endif.endif, label %B112.i16

B112.i16:
  %sunkaddr17 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %sunkaddr18 = getelementptr i8, ptr %sunkaddr17, i64 9
  %.137.1.i18 = load i8, ptr %sunkaddr18, align 1
  %.138.1.i21 = zext i8 %.137.1.i18 to i64
  %12 = add i8 %.137.1.i18, -58
  %or.cond.1.i19 = icmp ult i8 %12, -10
  br i1 %or.cond.1.i19, label %B212.endif.endif.endif, label %B212.endif.endif

B212.endif.endif:
  %13 = mul nuw nsw i64 %.138.i14, 10
  %.164.1.i22 = add nsw i64 %13, -528
  %.167.1.i23 = add nsw i64 %.164.1.i22, %.138.1.i21
  %14 = add nsw i64 %storemerge.i12, -13
  %or.cond.i26 = icmp ult i64 %14, -12
  %.20.i = icmp eq i64 %.167.1.i23, 0
  %or.cond62.i = select i1 %or.cond.i26, i1 true, i1 %.20.i
  br i1 %or.cond62.i, label %B212.endif.endif.endif, label %B54.else.if.i

B106.i:
  %"$phi106.0.3.0.i" = phi i64 [ 28, %B54.else.if.i ], [ %18, %B90.else.if.i ], [ 29, %B72.else.if.i ]
  %.173.i = lshr i64 %storemerge.i12, 3
  %.175.i = add nuw nsw i64 %.173.i, %storemerge.i12
  %.177.i = or i64 %.175.i, 30
  %.182.i = icmp eq i64 %storemerge.i12, 2
  %last.2.0.i = select i1 %.182.i, i64 %"$phi106.0.3.0.i", i64 %.177.i
  %.207.i = icmp ugt i64 %.167.1.i23, %last.2.0.i
  br i1 %.207.i, label %B212.endif.endif.endif, label %B186.i

B186.i:
  %.220.i = icmp ult i64 %storemerge.i12, 3
  %.223.i = sext i1 %.220.i to i64
  %"$phi210.0.2.048.i" = add nsw i64 %.167.3.i, %.223.i
  %"$phi244.1.2.0.v.i" = select i1 %.220.i, i64 9, i64 65533
  %"$phi244.1.2.0.i" = add nuw nsw i64 %"$phi244.1.2.0.v.i", %storemerge.i12
  %15 = trunc i64 %"$phi244.1.2.0.i" to i16
  %16 = mul i16 %15, 153
  %.28958.lhs.trunc.i = add i16 %16, 2
  %.2895859.i = udiv i16 %.28958.lhs.trunc.i, 5
  %.28958.zext.i = zext i16 %.2895859.i to i64
  %.317.i = mul nuw nsw i64 %"$phi210.0.2.048.i", 365
  %.326.1.i = lshr i64 %"$phi210.0.2.048.i", 2
  %.379.neg.i38.lhs.trunc = trunc nuw nsw i64 %"$phi210.0.2.048.i" to i16
  %.379.neg.i3839 = udiv i16 %.379.neg.i38.lhs.trunc, 100
  %.379.neg.i38.zext = zext i16 %.379.neg.i3839 to i64
  %.421.i4243 = udiv i16 %.379.neg.i38.lhs.trunc, 400
  %.421.i42.zext = zext i16 %.421.i4243 to i64
  %.315.i = add nuw nsw i64 %.326.1.i, -719469
  %.368.1.neg.i = add nsw i64 %.315.i, %.317.i
  %.359.i = add nsw i64 %.368.1.neg.i, %.421.i42.zext
  %.401.i = sub nsw i64 %.359.i, %.379.neg.i38.zext
  %.410.1.i = add nsw i64 %.401.i, %.28958.zext.i
  %.447.i = add nsw i64 %.410.1.i, %.167.1.i23
  br label %B212.endif.endif.endif

B54.else.if.i:
  %17 = and i64 %.167.3.i, 3
  %.71.i = icmp eq i64 %17, 0
  br i1 %.71.i, label %B72.else.if.i, label %B106.i

B72.else.if.i:
  %.96.i34.lhs.trunc = trunc nuw nsw i64 %.167.3.i to i16
  %.96.i3435 = urem i16 %.96.i34.lhs.trunc, 100
  %.117.not.i = icmp eq i16 %.96.i3435, 0
  br i1 %.117.not.i, label %B90.else.if.i, label %B106.i

B90.else.if.i:
  %.141.i3637 = urem i16 %.96.i34.lhs.trunc, 400
  %.162.i = icmp eq i16 %.141.i3637, 0
  %18 = select i1 %.162.i, i64 29, i64 28
  br label %B106.i

B212.endif.endif.endif:
  %.447.sink.i = phi i64 [ %.447.i, %B186.i ], [ -1000000, %B212.endif.endif ], [ -1000000, %B106.i ], [ -1000000, %B212.endif ], [ -1000000, %B112.i16 ]
  %.236 = add nsw i64 %arg.at, 11
  call void @llvm.memset.p0.i64(ptr align 8 dereferenceable(16) %.241, i8 0, i64 16, i1 false)
  %.245 = call i32 @compiled_clock(ptr %.241, ptr %excinfo.5, ptr %arg.data, i64 %.236, i64 %arg.end)
  %.255.fca.0.load = load i64, ptr %.241, align 8
  %sunkaddr64 = getelementptr i8, ptr %.241, i64 8
  %.255.fca.1.load = load i64, ptr %sunkaddr64, align 8
  %cond = icmp eq i32 %.245, 0
  br i1 %cond, label %B212.endif.endif.endif.endif, label %B212.endif.endif.endif.if.if

B212.endif.endif.endif.endif:
  %.280 = icmp eq i64 %.447.sink.i, -1000000
  %.283 = icmp slt i64 %.255.fca.1.load, 0
  %or.cond82 = select i1 %.280, i1 true, i1 %.283
  br i1 %or.cond82, label %B398, label %B402

B212.endif.endif.endif.if.if:
  store ptr null, ptr %excinfo, align 8
  br label %common.ret

B410.endif:
  %sunkaddr65 = getelementptr i8, ptr %.327, i64 8
  %.341.fca.1.load = load i64, ptr %sunkaddr65, align 8
  %.341.fca.0.load = load i64, ptr %.327, align 8
  %.368 = icmp slt i64 %.341.fca.1.load, 0
  %.380 = icmp sge i64 %.341.fca.1.load, %arg.end
  %or.cond83 = or i1 %.368, %.380
  br i1 %or.cond83, label %B474, label %B478

B410.if.if:
  store ptr null, ptr %excinfo, align 8
  br label %common.ret
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

define internal i32 @compiled_valued(ptr %retptr, ptr %excinfo, ptr %arg.data, i64 %arg.at, i64 %arg.end, i64 %arg.row, i64 %arg.rows, i64 %arg.field, i64 %arg.fields, ptr %arg.plan, ptr %arg.ints, ptr %arg.reals, ptr %arg.flags, ptr %arg.texts, i64 %arg.room, ptr %arg.valid, ptr %arg.hard, ptr %arg.used, ptr %arg.powers) {
B0:
  %.35.i = alloca [4 x i64], align 8
  %excinfo.1.i = alloca ptr, align 8
  %.272 = alloca [2 x i64], align 8
  %excinfo.2 = alloca ptr, align 8
  store ptr null, ptr %excinfo.2, align 8
  %.354 = alloca [4 x i64], align 8
  %excinfo.3 = alloca ptr, align 8
  %.663 = alloca [2 x i64], align 8
  %excinfo.6 = alloca ptr, align 8
  store ptr null, ptr %excinfo.6, align 8
  %.63.idx = mul i64 %arg.field, 48
  %.63 = getelementptr i8, ptr %arg.plan, i64 %.63.idx
  %.64 = load i64, ptr %.63, align 8
  %.68 = getelementptr i8, ptr %.63, i64 40
  %.69 = load i64, ptr %.68, align 8
  %.78 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %.79 = load i8, ptr %.78, align 1
  %0 = zext i8 %.79 to i32
  %.86 = icmp eq i8 %.79, 110
  br i1 %.86, label %B122, label %B192

B122:
  %sunkaddr = getelementptr i8, ptr %arg.plan, i64 %.63.idx
  %sunkaddr2 = getelementptr i8, ptr %sunkaddr, i64 24
  %.126 = load i64, ptr %sunkaddr2, align 8
  %.129.not = icmp eq i64 %.126, 0
  %.12.i.i = sub nsw i64 %arg.end, %arg.at
  %.13.i.i = icmp slt i64 %.12.i.i, 4
  %or.cond = select i1 %.129.not, i1 true, i1 %.13.i.i
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
  %common.ret.op = phi i32 [ 0, %B190 ], [ 0, %B264 ], [ 0, %B390.endif ], [ 0, %B580 ], [ 0, %B656 ], [ %.667, %B712.if.if ], [ 0, %B268.endif ], [ %.276, %B268.if.if ], [ %.358, %B390.if.if ], [ 0, %_ZN11json_kernel4realB44c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsBAK4JIagIAE8uint8_2axxxxx10float64_2a10float64_2a8int64_2a8int64_2ax.exit.thread ], [ %.39.i, %_ZN11json_kernel4realB44c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsBAK4JIagIAE8uint8_2axxxxx10float64_2a10float64_2a8int64_2a8int64_2ax.exit ], [ 0, %B602.endif ], [ 0, %B712.endif ]
  ret i32 %common.ret.op

B190:
  %"$phi190.0.2.0" = phi i64 [ -1, %B122 ], [ %.96.i, %B70.i ], [ -1, %B102.i ], [ -1, %B0.endif.i ], [ %spec.select.i, %B120.i ]
  store i64 %"$phi190.0.2.0", ptr %retptr, align 8
  br label %common.ret

B192:
  %.191 = mul nsw i64 %arg.field, %arg.rows
  %1 = getelementptr i8, ptr %arg.valid, i64 %.191
  %.196 = getelementptr i8, ptr %1, i64 %arg.row
  store i8 1, ptr %.196, align 1
  %.202 = mul nsw i64 %.69, %arg.rows
  %.206 = add nsw i64 %.202, %arg.row
  switch i64 %.64, label %B644 [
    i64 0, label %B252
    i64 1, label %B390
    i64 2, label %B484
    i64 3, label %B556
  ]

B252:
  %2 = trunc i32 %0 to i8
  %.234.not = icmp eq i8 %2, 34
  br i1 %.234.not, label %B268, label %B264

B264:
  store i64 -1, ptr %retptr, align 8
  br label %common.ret

B268:
  %.256 = mul nsw i64 %.69, %arg.room
  %.261 = add nsw i64 %arg.at, 1
  %.266 = getelementptr i64, ptr %arg.used, i64 %.69
  %.267 = load i64, ptr %.266, align 8
  %.268 = add nsw i64 %.267, %.256
  call void @llvm.memset.p0.i64(ptr align 8 dereferenceable(16) %.272, i8 0, i64 16, i1 false)
  %.276 = call i32 @compiled_text1(ptr %.272, ptr %excinfo.2, ptr %arg.data, i64 %.261, i64 %arg.end, ptr %arg.texts, i64 %.268, i64 1)
  %cond24 = icmp eq i32 %.276, 0
  br i1 %cond24, label %B268.endif, label %B268.if.if

B390:
  call void @llvm.memset.p0.i64(ptr align 8 dereferenceable(32) %.354, i8 0, i64 32, i1 false)
  %.358 = call i32 @compiled_number(ptr %.354, ptr %excinfo.3, ptr %arg.data, i64 %arg.at, i64 %arg.end)
  switch i32 %.358, label %B390.if.if [
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
  %.330.i = getelementptr double, ptr %arg.reals, i64 %.206
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
  %.454.0.ph = phi i64 [ %.49.fca.3.load.i, %B556.i ], [ -1, %B0.endif.i1 ]
  call void @llvm.lifetime.end.p0(ptr %.35.i)
  call void @llvm.lifetime.end.p0(ptr %excinfo.1.i)
  store i64 %.454.0.ph, ptr %retptr, align 8
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
  %.559 = getelementptr i8, ptr %arg.flags, i64 %.206
  store i8 %"$phi602.0.2.0", ptr %.559, align 1
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
  %sunkaddr9 = getelementptr i8, ptr %sunkaddr8, i64 4
  %.117.i14 = load i8, ptr %sunkaddr9, align 1
  %.121.i15 = icmp eq i8 %.117.i14, 101
  %.124.i16 = add nsw i64 %arg.at, 5
  %spec.select.i17 = select i1 %.121.i15, i64 %.124.i16, i64 -1
  br label %B602.endif

B0.endif.i5:
  %sunkaddr10 = getelementptr i8, ptr %arg.data, i64 %arg.at
  %.24.i.i7 = load i32, ptr %sunkaddr10, align 1
  switch i32 %.24.i.i7, label %B602.endif [
    i32 1819047278, label %B70.i18
    i32 1702195828, label %B70.i18
    i32 1936482662, label %B102.i8
  ]

B644:
  %7 = trunc i32 %0 to i8
  %.606.not = icmp eq i8 %7, 34
  br i1 %.606.not, label %B660, label %B656

B656:
  store i64 -1, ptr %retptr, align 8
  br label %common.ret

B660:
  %.626 = add nsw i64 %arg.at, 1
  %.630 = icmp eq i64 %.64, 4
  %spec.select = zext i1 %.630 to i64
  call void @llvm.memset.p0.i64(ptr align 8 dereferenceable(16) %.663, i8 0, i64 16, i1 false)
  %.667 = call i32 @compiled_moment(ptr %.663, ptr %excinfo.6, ptr %arg.data, i64 %.626, i64 %arg.end, i64 %spec.select)
  %cond = icmp eq i32 %.667, 0
  br i1 %cond, label %B712.endif, label %B712.if.if

B268.endif:
  %sunkaddr33 = getelementptr i8, ptr %.272, i64 8
  %.286.fca.1.load = load i64, ptr %sunkaddr33, align 8
  %.286.fca.0.load = load i64, ptr %.272, align 8
  %.310 = sub nsw i64 %.286.fca.1.load, %.256
  %sunkaddr34 = shl i64 %.69, 3
  %sunkaddr35 = getelementptr i8, ptr %arg.used, i64 %sunkaddr34
  store i64 %.310, ptr %sunkaddr35, align 8
  store i64 %.286.fca.0.load, ptr %retptr, align 8
  br label %common.ret

B268.if.if:
  %.284 = icmp sgt i32 %.276, 0
  %.277 = load ptr, ptr %excinfo.2, align 8
  %.285 = select i1 %.284, ptr %.277, ptr undef
  store ptr %.285, ptr %excinfo, align 8
  br label %common.ret

B390.endif:
  %sunkaddr36 = getelementptr i8, ptr %.354, i64 24
  %.368.fca.3.load = load i64, ptr %sunkaddr36, align 8
  %sunkaddr37 = getelementptr i8, ptr %.354, i64 16
  %.368.fca.2.load = load i64, ptr %sunkaddr37, align 8
  %.368.fca.0.load = load i64, ptr %.354, align 8
  %.405 = getelementptr i64, ptr %arg.ints, i64 %.206
  store i64 %.368.fca.0.load, ptr %.405, align 8
  %.411 = and i64 %.368.fca.2.load, 3
  %.412.not = icmp eq i64 %.411, 0
  %"$phi460.0.2.0" = select i1 %.412.not, i64 %.368.fca.3.load, i64 -1
  store i64 %"$phi460.0.2.0", ptr %retptr, align 8
  br label %common.ret

B390.if.if:
  store ptr null, ptr %excinfo, align 8
  br label %common.ret

B602.endif:
  %.sink.i11 = phi i64 [ %.96.i19, %B70.i18 ], [ -1, %B102.i8 ], [ -1, %B0.endif.i5 ], [ -1, %B602 ], [ %spec.select.i17, %B120.i12 ]
  store i64 %.sink.i11, ptr %retptr, align 8
  br label %common.ret

B712.endif:
  %sunkaddr38 = getelementptr i8, ptr %.663, i64 8
  %.677.fca.1.load = load i64, ptr %sunkaddr38, align 8
  %.677.fca.0.load = load i64, ptr %.663, align 8
  %.707 = getelementptr i64, ptr %arg.ints, i64 %.206
  store i64 %.677.fca.0.load, ptr %.707, align 8
  store i64 %.677.fca.1.load, ptr %retptr, align 8
  br label %common.ret

B712.if.if:
  %.675 = icmp sgt i32 %.667, 0
  %.668 = load ptr, ptr %excinfo.6, align 8
  %.676 = select i1 %.675, ptr %.668, ptr undef
  store ptr %.676, ptr %excinfo, align 8
  br label %common.ret
}

define internal i32 @compiled_skipped(ptr %retptr, ptr %excinfo, ptr %arg.data, i64 %arg.at, i64 %arg.end, ptr %arg.out) {
B0:
  %.263 = alloca i64, align 8
  %excinfo.3 = alloca ptr, align 8
  store ptr null, ptr %excinfo.3, align 8
  %.338 = alloca [2 x i64], align 8
  %excinfo.4 = alloca ptr, align 8
  store ptr null, ptr %excinfo.4, align 8
  %.415 = alloca [4 x i64], align 8
  %excinfo.6 = alloca ptr, align 8
  %.597 = alloca i64, align 8
  %excinfo.8 = alloca ptr, align 8
  store ptr null, ptr %excinfo.8, align 8
  br label %B16.outer

B16.outer:
  %at.12.1.ph = phi i64 [ %arg.at, %B0 ], [ %.578, %B604 ], [ %.611, %B624.endif ], [ %at.17.1, %B342 ]
  %objects.3.1.ph = phi i64 [ 0, %B0 ], [ %objects.5.2, %B604 ], [ %objects.5.2, %B624.endif ], [ %.238193, %B342 ]
  %levels.3.1.ph = phi i64 [ 0, %B0 ], [ %levels.5.2, %B604 ], [ %levels.5.2, %B624.endif ], [ %.244195, %B342 ]
  br label %B16

B16:
  %at.12.1 = phi i64 [ %at.15.2, %B762 ], [ %at.12.1.ph, %B16.outer ]
  %.19.i = icmp slt i64 %at.12.1, %arg.end
  br i1 %.19.i, label %B16.i, label %B16.endif

B16.i:
  %.29.i = getelementptr i8, ptr %arg.data, i64 %at.12.1
  %.30.i = load i8, ptr %.29.i, align 1
  %0 = zext i8 %.30.i to i32
  switch i32 %0, label %B16.endif [
    i32 32, label %B112.preheader.i
    i32 10, label %B112.preheader.i
    i32 13, label %B112.preheader.i
    i32 9, label %B112.preheader.i
  ]

B112.preheader.i:
  %.7242.i = add nsw i64 %at.12.1, 1
  %.8343.i = icmp slt i64 %.7242.i, %arg.end
  br i1 %.8343.i, label %B134.i.preheader, label %B16.endif

B134.i.preheader:
  br label %B134.i

B134.i:
  %.7244.i = phi i64 [ %.72.i, %B231.i ], [ %.7242.i, %B134.i.preheader ]
  %.89.i = getelementptr i8, ptr %arg.data, i64 %.7244.i
  %.90.i = load i8, ptr %.89.i, align 1
  %1 = zext i8 %.90.i to i32
  switch i32 %1, label %B16.endif.loopexit [
    i32 32, label %B231.i
    i32 10, label %B231.i
    i32 13, label %B231.i
    i32 9, label %B231.i
  ]

B231.i:
  %.72.i = add i64 %.7244.i, 1
  %exitcond.not.i = icmp eq i64 %arg.end, %.72.i
  br i1 %exitcond.not.i, label %B62, label %B134.i

common.ret:
  %common.ret.op = phi i32 [ 0, %B62 ], [ 0, %B134 ], [ 0, %B190 ], [ 0, %B338 ], [ 0, %B514 ], [ 0, %B576 ], [ 0, %B672 ], [ 0, %B716 ], [ 0, %B774 ], [ %.601, %B624.if ], [ %.342, %B356.if ], [ %.419, %B458.if ], [ %.267, %B290.if ]
  ret i32 %common.ret.op

B62:
  store i64 -1, ptr %retptr, align 8
  br label %common.ret

B66:
  %.110 = getelementptr i8, ptr %arg.data, i64 %at.3.0.i
  %.111 = load i8, ptr %.110, align 1
  %.112 = zext i8 %.111 to i64
  %2 = zext i8 %.111 to i32
  switch i32 %2, label %B410 [
    i32 123, label %B112
    i32 91, label %B112
    i32 34, label %B356
  ]

B112:
  %3 = icmp eq i64 %levels.3.1.ph, 60
  br i1 %3, label %B134, label %B138

B134:
  store i64 -1, ptr %retptr, align 8
  br label %common.ret

B138:
  %.144 = add nsw i64 %at.3.0.i, 1
  %.19.i93 = icmp slt i64 %.144, %arg.end
  br i1 %.19.i93, label %B16.i95, label %B138.endif

B16.i95:
  %.29.i96 = getelementptr i8, ptr %arg.data, i64 %.144
  %.30.i97 = load i8, ptr %.29.i96, align 1
  %4 = zext i8 %.30.i97 to i32
  switch i32 %4, label %B138.endif [
    i32 32, label %B112.preheader.i98
    i32 10, label %B112.preheader.i98
    i32 13, label %B112.preheader.i98
    i32 9, label %B112.preheader.i98
  ]

B112.preheader.i98:
  %.7242.i99 = add nsw i64 %at.3.0.i, 2
  %.8343.i100 = icmp slt i64 %.7242.i99, %arg.end
  br i1 %.8343.i100, label %B134.i101.preheader, label %B138.endif

B134.i101.preheader:
  br label %B134.i101

B134.i101:
  %.7244.i102 = phi i64 [ %.72.i106, %B231.i105 ], [ %.7242.i99, %B134.i101.preheader ]
  %.89.i103 = getelementptr i8, ptr %arg.data, i64 %.7244.i102
  %.90.i104 = load i8, ptr %.89.i103, align 1
  %5 = zext i8 %.90.i104 to i32
  switch i32 %5, label %B138.endif.loopexit [
    i32 32, label %B231.i105
    i32 10, label %B231.i105
    i32 13, label %B231.i105
    i32 9, label %B231.i105
  ]

B231.i105:
  %.72.i106 = add i64 %.7244.i102, 1
  %exitcond.not.i107 = icmp eq i64 %arg.end, %.72.i106
  br i1 %exitcond.not.i107, label %B190, label %B134.i101

B190:
  store i64 -1, ptr %retptr, align 8
  br label %common.ret

B194:
  %.198 = getelementptr i8, ptr %arg.data, i64 %at.3.0.i94
  %.199 = load i8, ptr %.198, align 1
  %.201 = add nuw nsw i64 %.112, 2
  %.202 = zext i8 %.199 to i64
  %.203 = icmp eq i64 %.201, %.202
  br i1 %.203, label %B224, label %B236

B224:
  %.208 = add nsw i64 %at.3.0.i94, 1
  br label %B502

B236:
  %6 = trunc i64 %.112 to i8
  %.118.le = icmp eq i8 %6, 123
  %.216 = shl nsw i64 %objects.3.1.ph, 1
  br i1 %.118.le, label %B290, label %B342

B290:
  store i64 0, ptr %.263, align 8
  %.267 = call i32 @compiled_named(ptr %.263, ptr %excinfo.3, ptr %arg.data, i64 %at.3.0.i94, i64 %arg.end, ptr %arg.out)
  %cond133 = icmp eq i32 %.267, 0
  br i1 %cond133, label %B290.endif, label %B290.if

B338:
  store i64 -1, ptr %retptr, align 8
  br label %common.ret

B342:
  %.238193 = phi i64 [ %.238191, %B290.endif ], [ %.216, %B236 ]
  %at.17.1 = phi i64 [ %.277, %B290.endif ], [ %at.3.0.i94, %B236 ]
  %.244195 = add nsw i64 %levels.3.1.ph, 1
  br label %B16.outer

B356:
  %.332 = add nsw i64 %at.3.0.i, 1
  call void @llvm.memset.p0.i64(ptr align 8 dereferenceable(16) %.338, i8 0, i64 16, i1 false)
  %.342 = call i32 @compiled_text(ptr %.338, ptr %excinfo.4, ptr %arg.data, i64 %.332, i64 %arg.end, ptr %arg.out, i64 0, i64 0)
  %.352.fca.0.load = load i64, ptr %.338, align 8
  %cond134 = icmp eq i32 %.342, 0
  br i1 %cond134, label %B502, label %B356.if

B410:
  %7 = trunc i64 %.112 to i8
  %.374 = icmp ugt i8 %7, 96
  br i1 %.374, label %B422, label %B458

B422:
  %.12.i.i = sub nsw i64 %arg.end, %at.3.0.i
  %.13.i.i = icmp slt i64 %.12.i.i, 4
  br i1 %.13.i.i, label %B514, label %B0.endif.i

B70.i:
  %.96.i = add nsw i64 %at.3.0.i, 4
  br label %B502

B102.i:
  %.107.i = add nsw i64 %at.3.0.i, 4
  %.109.i = icmp slt i64 %.107.i, %arg.end
  br i1 %.109.i, label %B120.i, label %B514

B120.i:
  %sunkaddr = getelementptr i8, ptr %arg.data, i64 %at.3.0.i
  %sunkaddr215 = getelementptr i8, ptr %sunkaddr, i64 4
  %.117.i = load i8, ptr %sunkaddr215, align 1
  %.121.i = icmp eq i8 %.117.i, 101
  %.124.i = add nsw i64 %at.3.0.i, 5
  br i1 %.121.i, label %B502, label %B514

B0.endif.i:
  %sunkaddr217 = getelementptr i8, ptr %arg.data, i64 %at.3.0.i
  %.24.i.i = load i32, ptr %sunkaddr217, align 1
  switch i32 %.24.i.i, label %B514 [
    i32 1819047278, label %B70.i
    i32 1702195828, label %B70.i
    i32 1936482662, label %B102.i
  ]

B458:
  call void @llvm.memset.p0.i64(ptr align 8 dereferenceable(32) %.415, i8 0, i64 32, i1 false)
  %.419 = call i32 @compiled_number(ptr %.415, ptr %excinfo.6, ptr %arg.data, i64 %at.3.0.i, i64 %arg.end)
  %sunkaddr218 = getelementptr inbounds i8, ptr %.415, i64 24
  %.429.fca.3.load = load i64, ptr %sunkaddr218, align 8
  switch i32 %.419, label %B458.if [
    i32 -2, label %B502
    i32 0, label %B502
  ]

B502:
  %at.15.2 = phi i64 [ %.208, %B224 ], [ %.429.fca.3.load, %B458 ], [ %.429.fca.3.load, %B458 ], [ %.124.i, %B120.i ], [ %.352.fca.0.load, %B356 ], [ %.96.i, %B70.i ]
  %.461 = icmp slt i64 %at.15.2, 0
  br i1 %.461, label %B514, label %B518

B514:
  store i64 -1, ptr %retptr, align 8
  br label %common.ret

B518:
  %8 = icmp sgt i64 %levels.3.1.ph, 0
  br i1 %8, label %B530.preheader, label %B762

B530.preheader:
  br label %B530

B530:
  %at.18.2 = phi i64 [ %.701, %B720 ], [ %at.15.2, %B530.preheader ]
  %objects.5.2 = phi i64 [ %.705, %B720 ], [ %objects.3.1.ph, %B530.preheader ]
  %levels.5.2 = phi i64 [ %.707, %B720 ], [ %levels.3.1.ph, %B530.preheader ]
  %.19.i109 = icmp slt i64 %at.18.2, %arg.end
  br i1 %.19.i109, label %B16.i111, label %B530.endif

B16.i111:
  %.29.i112 = getelementptr i8, ptr %arg.data, i64 %at.18.2
  %.30.i113 = load i8, ptr %.29.i112, align 1
  %9 = zext i8 %.30.i113 to i32
  switch i32 %9, label %B530.endif [
    i32 32, label %B112.preheader.i114
    i32 10, label %B112.preheader.i114
    i32 13, label %B112.preheader.i114
    i32 9, label %B112.preheader.i114
  ]

B112.preheader.i114:
  %.7242.i115 = add nsw i64 %at.18.2, 1
  %.8343.i116 = icmp slt i64 %.7242.i115, %arg.end
  br i1 %.8343.i116, label %B134.i117.preheader, label %B530.endif

B134.i117.preheader:
  br label %B134.i117

B134.i117:
  %.7244.i118 = phi i64 [ %.72.i122, %B231.i121 ], [ %.7242.i115, %B134.i117.preheader ]
  %.89.i119 = getelementptr i8, ptr %arg.data, i64 %.7244.i118
  %.90.i120 = load i8, ptr %.89.i119, align 1
  %10 = zext i8 %.90.i120 to i32
  switch i32 %10, label %B530.endif.loopexit [
    i32 32, label %B231.i121
    i32 10, label %B231.i121
    i32 13, label %B231.i121
    i32 9, label %B231.i121
  ]

B231.i121:
  %.72.i122 = add i64 %.7244.i118, 1
  %exitcond.not.i123 = icmp eq i64 %arg.end, %.72.i122
  br i1 %exitcond.not.i123, label %B576, label %B134.i117

B576:
  store i64 -1, ptr %retptr, align 8
  br label %common.ret

B580:
  %.572 = getelementptr i8, ptr %arg.data, i64 %at.3.0.i110
  %.573 = load i8, ptr %.572, align 1
  %.574 = zext i8 %.573 to i64
  %.575 = icmp eq i8 %.573, 44
  br i1 %.575, label %B604, label %B678

B604:
  %11 = and i64 %objects.5.2, 1
  %12 = icmp eq i64 %11, 0
  %.578 = add nsw i64 %at.3.0.i110, 1
  br i1 %12, label %B16.outer, label %B624

B624:
  store i64 0, ptr %.597, align 8
  %.601 = call i32 @compiled_named(ptr %.597, ptr %excinfo.8, ptr %arg.data, i64 %.578, i64 %arg.end, ptr %arg.out)
  %cond = icmp eq i32 %.601, 0
  br i1 %cond, label %B624.endif, label %B624.if

B672:
  store i64 -1, ptr %retptr, align 8
  br label %common.ret

B678:
  %13 = and i64 %objects.5.2, 1
  %14 = icmp eq i64 %13, 0
  %spec.select = select i1 %14, i64 93, i64 125
  %.680.not = icmp eq i64 %spec.select, %.574
  br i1 %.680.not, label %B720, label %B716

B716:
  store i64 -1, ptr %retptr, align 8
  br label %common.ret

B720:
  %.701 = add nsw i64 %at.3.0.i110, 1
  %.705 = ashr i64 %objects.5.2, 1
  %.707 = add nsw i64 %levels.5.2, -1
  %.720 = icmp sgt i64 %levels.5.2, 1
  br i1 %.720, label %B530, label %B774

B762:
  %15 = icmp eq i64 %levels.3.1.ph, 0
  br i1 %15, label %B774, label %B16

B774:
  %at.13.3378 = phi i64 [ %.701, %B720 ], [ %at.15.2, %B762 ]
  store i64 %at.13.3378, ptr %retptr, align 8
  br label %common.ret

B16.endif.loopexit:
  br label %B16.endif

B16.endif:
  %at.3.0.i = phi i64 [ %at.12.1, %B16.i ], [ %at.12.1, %B16 ], [ %.7242.i, %B112.preheader.i ], [ %.7244.i, %B16.endif.loopexit ]
  %.92.not = icmp sgt i64 %arg.end, %at.3.0.i
  br i1 %.92.not, label %B66, label %B62

B138.endif.loopexit:
  br label %B138.endif

B138.endif:
  %at.3.0.i94 = phi i64 [ %.144, %B16.i95 ], [ %.144, %B138 ], [ %.7242.i99, %B112.preheader.i98 ], [ %.7244.i102, %B138.endif.loopexit ]
  %.178.not = icmp slt i64 %at.3.0.i94, %arg.end
  br i1 %.178.not, label %B194, label %B190

B290.if:
  %.275 = icmp sgt i32 %.267, 0
  %.268 = load ptr, ptr %excinfo.3, align 8
  %.276 = select i1 %.275, ptr %.268, ptr undef
  store ptr %.276, ptr %excinfo, align 8
  br label %common.ret

B290.endif:
  %.277 = load i64, ptr %.263, align 8
  %.238191 = or i64 %.216, 1
  %.291 = icmp slt i64 %.277, 0
  br i1 %.291, label %B338, label %B342

B356.if:
  %.350 = icmp sgt i32 %.342, 0
  %.343 = load ptr, ptr %excinfo.4, align 8
  %.351 = select i1 %.350, ptr %.343, ptr undef
  store ptr %.351, ptr %excinfo, align 8
  br label %common.ret

B458.if:
  store ptr null, ptr %excinfo, align 8
  br label %common.ret

B530.endif.loopexit:
  br label %B530.endif

B530.endif:
  %at.3.0.i110 = phi i64 [ %at.18.2, %B16.i111 ], [ %at.18.2, %B530 ], [ %.7242.i115, %B112.preheader.i114 ], [ %.7244.i118, %B530.endif.loopexit ]
  %.554.not = icmp slt i64 %at.3.0.i110, %arg.end
  br i1 %.554.not, label %B580, label %B576

B624.if:
  %.609 = icmp sgt i32 %.601, 0
  %.602 = load ptr, ptr %excinfo.8, align 8
  %.610 = select i1 %.609, ptr %.602, ptr undef
  store ptr %.610, ptr %excinfo, align 8
  br label %common.ret

B624.endif:
  %.611 = load i64, ptr %.597, align 8
  %.625 = icmp slt i64 %.611, 0
  br i1 %.625, label %B672, label %B16.outer
}

define i64 @parse(ptr %a0, ptr %a1, i64 %a2, i64 %a3, i64 %a4, ptr %a5, ptr %a6, ptr %a7, ptr %a8, ptr %a9, ptr %a10, ptr %a11, i64 %a12, ptr %a13, ptr %a14, ptr %a15, ptr %a16, ptr %a17) {
  %answer = alloca i64, align 8
  store i64 0, ptr %answer, align 8
  %status = call i32 @compiled_parse(ptr %answer, ptr null, ptr %a0, ptr %a1, i64 %a2, i64 %a3, i64 %a4, ptr %a5, ptr %a6, ptr %a7, ptr %a8, ptr %a9, ptr %a10, ptr %a11, i64 %a12, ptr %a13, ptr %a14, ptr %a15, ptr %a16, ptr %a17)
  %fault = load i64, ptr %answer, align 8
  ret i64 %fault
}
