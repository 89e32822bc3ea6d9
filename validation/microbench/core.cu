// Latencies, throughputs, bandwidths and launches: the figures that fix most parameters of a timing model. One line a
// figure: name,parameter,value,unit.
//
//   core lat|thr|lds|ldg|atom              a part, or several in one process, in this order: lat+ldg+mem
//   core launch [COUNT]                    empty kernels back to back, 100 or so many
//   core mem FROM TO                       chases with footprints of so many KiB
//   core bw MiB ONLY REPETITIONS BLOCKS    bandwidths; MiB stands for 2048, ONLY is a footprint, -1 for the largest or 0 for
//                                          all, BLOCKS likewise; BLOCKS -1 leaves only writing and copying
//
// Latencies are dependent chains of one warp, throughputs one block on one SM; bandwidths use every SM.
#include <cstdio>
#include <cstdlib>
#include <cstdint>
#include <vector>
#include <algorithm>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#define CK(x) do{cudaError_t e=(x); if(e!=cudaSuccess){fprintf(stderr,"%s:%d %s\n",__FILE__,__LINE__,cudaGetErrorString(e)); exit(1);} }while(0)
static void row(const char*n,const char*p,double v,const char*u){ printf("%s,%s,%.4f,%s\n",n,p,v,u); fflush(stdout);}

// ---- dependent-chain latency: N copies of one instruction, each reading the previous result ----
constexpr int CHAIN=512;
#define LAT(NAME,T,INIT,ASM) \
__global__ void lat_##NAME(long long*out,T seed){ T x=seed; T y=seed; (void)y; \
  for(int w=0;w<2;w++){ long long t0=clock64(); _Pragma("unroll") for(int i=0;i<CHAIN;i++){ ASM; } long long t1=clock64(); \
  if(threadIdx.x==0) out[w]=t1-t0; } if(x==(T)123457) out[2]=1; }
LAT(iadd_lop_pair,int,1, asm volatile("add.s32 %0,%0,%1; xor.b32 %0,%0,%1;":"+r"(x):"r"(y)))
LAT(imad,int,1, asm volatile("mad.lo.s32 %0,%0,%1,%1;":"+r"(x):"r"(y)))
LAT(prmt,int,1, asm volatile("prmt.b32 %0,%0,%1,0x6543;":"+r"(x):"r"(y)))
LAT(shl,int,1, asm volatile("shf.l.wrap.b32 %0,%0,%1,7;":"+r"(x):"r"(y)))
LAT(popc,int,1, asm volatile("popc.b32 %0,%0;":"+r"(x)))
LAT(imad_wide,long long,1, asm volatile("{.reg .s32 t; cvt.u32.u64 t,%0; mad.wide.s32 %0,t,%1,%0;}":"+l"(x):"r"((int)y)))
LAT(fadd,float,1, asm volatile("add.f32 %0,%0,%1;":"+f"(x):"f"(y)))
LAT(fmul,float,1, asm volatile("mul.f32 %0,%0,%1;":"+f"(x):"f"(y)))
LAT(ffma,float,1, asm volatile("fma.rn.f32 %0,%0,%1,%1;":"+f"(x):"f"(y)))
LAT(dadd,double,1, asm volatile("add.f64 %0,%0,%1;":"+d"(x):"d"(y)))
LAT(dfma,double,1, asm volatile("fma.rn.f64 %0,%0,%1,%1;":"+d"(x):"d"(y)))
LAT(ex2,float,1, asm volatile("ex2.approx.ftz.f32 %0,%0;":"+f"(x)))
LAT(lg2,float,1, asm volatile("lg2.approx.ftz.f32 %0,%0;":"+f"(x)))
LAT(rsqrt,float,1, asm volatile("rsqrt.approx.ftz.f32 %0,%0;":"+f"(x)))
LAT(sin,float,1, asm volatile("sin.approx.ftz.f32 %0,%0;":"+f"(x)))
LAT(i2f2i,int,1, asm volatile("{.reg .f32 t; cvt.rn.f32.s32 t,%0; cvt.rzi.s32.f32 %0,t;}":"+r"(x)))
LAT(setp_selp_pair,int,1, asm volatile("{.reg .pred p; .reg .s32 t; add.s32 t,%0,7; setp.gt.s32 p,%0,%1; selp.s32 %0,t,%0,p;}":"+r"(x):"r"(y)))
LAT(vote,int,1, asm volatile("{.reg .pred p; setp.ne.s32 p,%0,0; vote.sync.ballot.b32 %0,p,0xffffffff;}":"+r"(x)))
LAT(redux,int,1, asm volatile("redux.sync.add.s32 %0,%0,0xffffffff;":"+r"(x)))
LAT(match,int,1, asm volatile("match.any.sync.b32 %0,%0,0xffffffff;":"+r"(x)))
__global__ void lat_hfma2(long long*out,unsigned seed){ unsigned x=seed,y=seed; for(int w=0;w<2;w++){ long long t0=clock64();
 _Pragma("unroll") for(int i=0;i<CHAIN;i++) asm volatile("fma.rn.f16x2 %0,%0,%1,%1;":"+r"(x):"r"(y)); long long t1=clock64(); if(threadIdx.x==0) out[w]=t1-t0;} if(x==77) out[2]=1; }
__global__ void lat_lds(long long*out,int n){ __shared__ int s[1024]; for(int i=threadIdx.x;i<1024;i+=blockDim.x) s[i]=((i+1)&1023)*4; __syncthreads();
 unsigned base=(unsigned)__cvta_generic_to_shared(s); unsigned a=threadIdx.x*4; for(int w=0;w<2;w++){ long long t0=clock64();
 _Pragma("unroll") for(int i=0;i<CHAIN;i++) asm volatile("{.reg .u32 t; add.u32 t,%0,%1; ld.shared.u32 %0,[t];}":"+r"(a):"r"(base)); long long t1=clock64(); if(threadIdx.x==0) out[w]=t1-t0;} if(a==77777) out[2]=1; }
__global__ void lat_atoms(long long*out,int n){ __shared__ int s[32]; if(threadIdx.x<32) s[threadIdx.x]=0; __syncthreads(); unsigned b=(unsigned)__cvta_generic_to_shared(s); int x=0; for(int w=0;w<2;w++){ long long t0=clock64();
 _Pragma("unroll 64") for(int i=0;i<CHAIN;i++) asm volatile("atom.shared.add.u32 %0,[%1],%0;":"+r"(x):"r"(b)); long long t1=clock64(); if(threadIdx.x==0) out[w]=t1-t0;} if(x==77777) out[2]=1; }
__global__ void lat_bar(long long*out,int n){ for(int w=0;w<2;w++){ long long t0=clock64(); _Pragma("unroll 64") for(int i=0;i<CHAIN;i++) asm volatile("bar.sync 0;"); long long t1=clock64(); if(threadIdx.x==0) out[w]=t1-t0; } }
template<class K,class T> void lat(const char*n,K k,T seed,int threads=1){ long long*d; CK(cudaMalloc(&d,64)); k<<<1,threads>>>(d,seed); CK(cudaDeviceSynchronize()); k<<<1,threads>>>(d,seed); CK(cudaDeviceSynchronize()); long long h[2]; CK(cudaMemcpy(h,d,16,cudaMemcpyDeviceToHost)); char p[32]; sprintf(p,"threads=%d",threads); row(n,p,(double)std::min(h[0],h[1])/CHAIN,"cycles/inst"); CK(cudaFree(d)); }

// ---- throughput: independent chains, all warps of one SM ----
#define THR(NAME,T,ASM1,ASM2,ASM3,ASM4) \
__global__ void thr_##NAME(long long*out,T s){ T a=s,b=s+(T)1,c=s+(T)2,d=s+(T)3,y=s; __syncthreads(); long long t0=clock64(); \
 for(int r=0;r<16;r++){ _Pragma("unroll") for(int i=0;i<32;i++){ ASM1; ASM2; ASM3; ASM4; } } __syncthreads(); long long t1=clock64(); if(threadIdx.x==0) out[0]=t1-t0; if((T)(a+b+c+d)==(T)123457) out[2]=1; }
THR(ffma,float, asm volatile("fma.rn.f32 %0,%0,%1,%1;":"+f"(a):"f"(y)), asm volatile("fma.rn.f32 %0,%0,%1,%1;":"+f"(b):"f"(y)), asm volatile("fma.rn.f32 %0,%0,%1,%1;":"+f"(c):"f"(y)), asm volatile("fma.rn.f32 %0,%0,%1,%1;":"+f"(d):"f"(y)))
THR(iadd,int, asm volatile("xor.b32 %0,%0,%1; add.s32 %0,%0,%1;":"+r"(a):"r"(y)), asm volatile("xor.b32 %0,%0,%1; add.s32 %0,%0,%1;":"+r"(b):"r"(y)), asm volatile("xor.b32 %0,%0,%1; add.s32 %0,%0,%1;":"+r"(c):"r"(y)), asm volatile("xor.b32 %0,%0,%1; add.s32 %0,%0,%1;":"+r"(d):"r"(y)))
THR(imad,int, asm volatile("mad.lo.s32 %0,%0,%1,%1;":"+r"(a):"r"(y)), asm volatile("mad.lo.s32 %0,%0,%1,%1;":"+r"(b):"r"(y)), asm volatile("mad.lo.s32 %0,%0,%1,%1;":"+r"(c):"r"(y)), asm volatile("mad.lo.s32 %0,%0,%1,%1;":"+r"(d):"r"(y)))
THR(dfma,double, asm volatile("fma.rn.f64 %0,%0,%1,%1;":"+d"(a):"d"(y)), asm volatile("fma.rn.f64 %0,%0,%1,%1;":"+d"(b):"d"(y)), asm volatile("fma.rn.f64 %0,%0,%1,%1;":"+d"(c):"d"(y)), asm volatile("fma.rn.f64 %0,%0,%1,%1;":"+d"(d):"d"(y)))
THR(ex2,float, asm volatile("ex2.approx.ftz.f32 %0,%0;":"+f"(a)), asm volatile("ex2.approx.ftz.f32 %0,%0;":"+f"(b)), asm volatile("ex2.approx.ftz.f32 %0,%0;":"+f"(c)), asm volatile("ex2.approx.ftz.f32 %0,%0;":"+f"(d)))
THR(popc,int, asm volatile("popc.b32 %0,%0;":"+r"(a)), asm volatile("popc.b32 %0,%0;":"+r"(b)), asm volatile("popc.b32 %0,%0;":"+r"(c)), asm volatile("popc.b32 %0,%0;":"+r"(d)))
template<class K,class T> void thr(const char*n,K k,T s){ long long*d; CK(cudaMalloc(&d,64)); for(int th: {32,64,128,256,512,1024}){ for(int q=0;q<2;q++){ k<<<1,th>>>(d,s); CK(cudaDeviceSynchronize()); } long long h; CK(cudaMemcpy(&h,d,8,cudaMemcpyDeviceToHost)); char p[32]; sprintf(p,"threads=%d",th); row(n,p,(double)th*16*32*4/h,"thread-inst/cycle/SM"); } CK(cudaFree(d)); }
// shared-memory throughput with stride (bank conflicts) and width
template<int W> __global__ void thr_lds(long long*out,int stride){ extern __shared__ int s[]; for(int i=threadIdx.x;i<8192;i+=blockDim.x) s[i]=i; __syncthreads(); unsigned b=(unsigned)__cvta_generic_to_shared(s)+((threadIdx.x%32)*stride*W*4)%32768; int acc=0,r0,r1,r2,r3; long long t0=clock64();
 for(int r=0;r<16;r++){ _Pragma("unroll") for(int i=0;i<32;i++){ if(W==1) asm volatile("ld.volatile.shared.u32 %0,[%1];":"=r"(r0):"r"(b)); if(W==2) asm volatile("ld.volatile.shared.v2.u32 {%0,%1},[%2];":"=r"(r0),"=r"(r1):"r"(b)); if(W==4) asm volatile("ld.volatile.shared.v4.u32 {%0,%1,%2,%3},[%4];":"=r"(r0),"=r"(r1),"=r"(r2),"=r"(r3):"r"(b)); acc+=r0; } } __syncthreads(); long long t1=clock64(); if(threadIdx.x==0) out[0]=t1-t0; if(acc==123457) out[1]=1; }
template<int W> void lds(){ long long*d; CK(cudaMalloc(&d,64)); for(int st: {1,2,4,8,16,32,33}) { for(int q=0;q<2;q++){ thr_lds<W><<<1,1024,32768+65536*0>>>(d,st); CK(cudaDeviceSynchronize()); } long long h; CK(cudaMemcpy(&h,d,8,cudaMemcpyDeviceToHost)); char p[48]; sprintf(p,"width=%dB stride=%d",W*4,st); row("lds_throughput",p,(double)h/(32.0*16*32),"cycles/warp-inst/SM"); } CK(cudaFree(d)); }

// L1-hit global load throughput: every warp reads the same 16 KB, one access per lane, with lane stride in words
template<int W> __global__ void thr_ldg(const int*g,long long*out,int stride){ const int*p=g+((threadIdx.x%32)*stride*W)%4096; int acc=0,r0,r1,r2,r3; for(int q=0;q<2;q++){ __syncthreads(); long long t0=clock64();
 for(int r=0;r<16;r++){ _Pragma("unroll") for(int i=0;i<32;i++){ if(W==1) asm volatile("ld.weak.global.ca.u32 %0,[%1];":"=r"(r0):"l"(p+i*32)); if(W==2) asm volatile("ld.weak.global.ca.v2.u32 {%0,%1},[%2];":"=r"(r0),"=r"(r1):"l"(p+i*32)); if(W==4) asm volatile("ld.weak.global.ca.v4.u32 {%0,%1,%2,%3},[%4];":"=r"(r0),"=r"(r1),"=r"(r2),"=r"(r3):"l"(p+i*32)); acc+=r0; } asm volatile("membar.cta;":::"memory"); } __syncthreads(); long long t1=clock64(); if(threadIdx.x==0) out[0]=t1-t0; } if(acc==123457) out[1]=1; }
template<int W> void ldg(){ long long*d; int*g; CK(cudaMalloc(&d,64)); CK(cudaMalloc(&g,1<<20)); CK(cudaMemset(g,0,1<<20)); for(int st: {1,2,4,8,16,32}){ thr_ldg<W><<<1,1024>>>(g,d,st); CK(cudaDeviceSynchronize()); long long h; CK(cudaMemcpy(&h,d,8,cudaMemcpyDeviceToHost)); char p[64]; sprintf(p,"width=%dB lane stride=%d",W*4,st); row("l1_load_throughput",p,(double)h/(32.0*16*32),"cycles/warp-inst/SM"); } CK(cudaFree(d)); CK(cudaFree(g)); }
// ---- memory latency: pointer chase ----
template<int CACHE> __global__ void chase(const uint64_t* __restrict__ start,long long*out,int n){ uint64_t p=(uint64_t)start; for(int i=0;i<n;i++){ if(CACHE==0) asm volatile("ld.global.ca.u64 %0,[%0];":"+l"(p)); else asm volatile("ld.global.cg.u64 %0,[%0];":"+l"(p)); }
 long long t0=clock64(); for(int i=0;i<n;i++){ if(CACHE==0) asm volatile("ld.global.ca.u64 %0,[%0];":"+l"(p)); else asm volatile("ld.global.cg.u64 %0,[%0];":"+l"(p)); } long long t1=clock64(); out[0]=t1-t0; out[1]=(long long)p; }
void mem_lat(size_t lo,size_t hi){ long long*d; CK(cudaMalloc(&d,64)); struct C{size_t foot,stride;}; 
 for(C c: {C{8<<10,128},C{32<<10,128},C{128<<10,128},C{192<<10,128},C{256<<10,128},C{1<<20,128},C{8<<20,128},C{20<<20,128},C{30<<20,128},C{40<<20,128},C{60<<20,128},C{128<<20,256},C{1ull<<30,4096},C{4ull<<30,65536},C{16ull<<30,2097152},C{32ull<<30,2097152}}) if(c.foot>=lo&&c.foot<=hi) for(int cg=0;cg<2;cg++){
  char*b; if(cudaMalloc(&b,c.foot)!=cudaSuccess){cudaGetLastError();continue;} size_t n=c.foot/c.stride; std::vector<uint32_t> perm(n); for(size_t i=0;i<n;i++)perm[i]=i; uint64_t s=88172645463325252ull; for(size_t i=n-1;i>0;i--){ s^=s<<13;s^=s>>7;s^=s<<17; std::swap(perm[i],perm[s%(i+1)]);} 
  std::vector<uint64_t> nxt(n); for(size_t i=0;i<n;i++) nxt[perm[i]]=(uint64_t)b+(size_t)perm[(i+1)%n]*c.stride; CK(cudaMemcpy2D(b,c.stride,nxt.data(),8,8,n,cudaMemcpyHostToDevice)); int it=(int)std::min<size_t>(n,20000); 
  if(cg) chase<1><<<1,1>>>((uint64_t*)b,d,it); else chase<0><<<1,1>>>((uint64_t*)b,d,it); CK(cudaDeviceSynchronize()); long long h; CK(cudaMemcpy(&h,d,8,cudaMemcpyDeviceToHost)); char p[80]; sprintf(p,"%s footprint=%zuKB stride=%zu",cg?"cg":"ca",c.foot>>10,c.stride); row("load_latency",p,(double)h/it,"cycles"); CK(cudaFree(b)); } }
// ---- bandwidth ----
__global__ void rd(const float4* __restrict__ a,float*o,size_t n,int reps){ float s=0; for(int r=0;r<reps;r++) for(size_t i=blockIdx.x*(size_t)blockDim.x+threadIdx.x;i<n;i+=(size_t)gridDim.x*blockDim.x){ float4 v; asm volatile("ld.global.cg.v4.f32 {%0,%1,%2,%3},[%4];":"=f"(v.x),"=f"(v.y),"=f"(v.z),"=f"(v.w):"l"(a+i)); s+=v.x+v.y+v.z+v.w; } if(s==1.2345f) o[0]=s; }
__global__ void wr(float4*a,size_t n){ for(size_t i=blockIdx.x*(size_t)blockDim.x+threadIdx.x;i<n;i+=(size_t)gridDim.x*blockDim.x) a[i]=make_float4(1,2,3,4); }
__global__ void cp(const float4* __restrict__ a,float4*b,size_t n){ for(size_t i=blockIdx.x*(size_t)blockDim.x+threadIdx.x;i<n;i+=(size_t)gridDim.x*blockDim.x) b[i]=a[i]; }
void bw(int sms,size_t N,int only,int R,int just){ float4*a,*b; float*o; CK(cudaMalloc(&a,N)); CK(cudaMalloc(&b,N)); CK(cudaMalloc(&o,4)); CK(cudaMemset(a,1,N)); cudaEvent_t e0,e1; cudaEventCreate(&e0); cudaEventCreate(&e1); float ms; char p[64];
 for(size_t f: {(size_t)4<<20,(size_t)16<<20,(size_t)24<<20,(size_t)32<<20,(size_t)48<<20,N}) if(only==0||(size_t)only<<20==f||(only<0&&f==N)) for(int blocks: {sms/4,sms,sms*2,sms*4,sms*8}) if(just==0||just==blocks){ int reps=f<N?R:1; size_t n=f/16; rd<<<blocks,512>>>(a,o,n,2>reps?reps:2); cudaEventRecord(e0); rd<<<blocks,512>>>(a,o,n,reps); cudaEventRecord(e1); CK(cudaEventSynchronize(e1)); cudaEventElapsedTime(&ms,e0,e1);
  // With few repetitions the launch itself shows: the difference to half as many does not have it.
  if(f<N&&R<50){ float half; cudaEventRecord(e0); rd<<<blocks,512>>>(a,o,n,reps/2); cudaEventRecord(e1); CK(cudaEventSynchronize(e1)); cudaEventElapsedTime(&half,e0,e1); ms-=half; reps-=reps/2; }
  sprintf(p,"footprint=%zuMB blocks=%d",f<N?f>>20:(size_t)2048,blocks); row("read_bandwidth",p,(double)f*reps/ms/1e6,"GB/s"); }
 if(only<=0&&just<=0){ for(int q=0;q<2;q++){ cudaEventRecord(e0); wr<<<sms*4,512>>>(b,N/16); cudaEventRecord(e1); CK(cudaEventSynchronize(e1)); cudaEventElapsedTime(&ms,e0,e1);} row("write_bandwidth","2048MB",(double)N/ms/1e6,"GB/s");
 for(int q=0;q<2;q++){ cudaEventRecord(e0); cp<<<sms*4,512>>>(a,b,N/16); cudaEventRecord(e1); CK(cudaEventSynchronize(e1)); cudaEventElapsedTime(&ms,e0,e1);} row("copy_bandwidth","2048MB read+write",2.0*N/ms/1e6,"GB/s"); } CK(cudaFree(a)); CK(cudaFree(b)); }
// ---- atomics ----
__global__ void at(unsigned*a,int mode,int n,long long*out){ unsigned*p = mode==0? a : mode==1? a+threadIdx.x%32*1 : mode==2? a+(blockIdx.x*blockDim.x+threadIdx.x) : a+blockIdx.x*32; unsigned x=0; long long t0=clock64(); for(int i=0;i<n;i++) x=atomicAdd(p,x|1); long long t1=clock64(); if(threadIdx.x==0&&blockIdx.x==0) out[0]=t1-t0; if(x==0xffffffff) out[1]=1; }
__global__ void red(unsigned*a,int mode,int n){ unsigned*p = mode==0? a : mode==1? a+threadIdx.x%32 : mode==2? a+(blockIdx.x*blockDim.x+threadIdx.x) : a+blockIdx.x*32; for(int i=0;i<n;i++) atomicAdd(p,1u); }
void atomics(int sms){ unsigned*a; long long*d; CK(cudaMalloc(&a,64<<20)); CK(cudaMalloc(&d,64)); long long h; char p[64]; const char*nm[]={"one address","32 addresses of one line","address per thread","address per block"};
 for(int m=0;m<4;m++){ at<<<1,1>>>(a,m,256,d); CK(cudaDeviceSynchronize()); at<<<1,1>>>(a,m,256,d); CK(cudaMemcpy(&h,d,8,cudaMemcpyDeviceToHost)); if(m==0) row("atomic_latency","1 thread",(double)h/256,"cycles"); 
  at<<<1,32>>>(a,m,256,d); CK(cudaMemcpy(&h,d,8,cudaMemcpyDeviceToHost)); sprintf(p,"1 warp, %s",nm[m]); row("atomic_latency",p,(double)h/256,"cycles"); 
  cudaEvent_t e0,e1; cudaEventCreate(&e0); cudaEventCreate(&e1); float ms; red<<<sms*2,256>>>(a,m,64); cudaEventRecord(e0); red<<<sms*2,256>>>(a,m,64); cudaEventRecord(e1); CK(cudaEventSynchronize(e1)); cudaEventElapsedTime(&ms,e0,e1); row("reduction_throughput",nm[m],(double)sms*2*256*64/ms/1e6,"Gatomic/s"); } }
// ---- launch: empty kernels ----
__global__ void empty(){ }
__global__ void spin(long long c){ long long t=clock64(); while(clock64()-t<c); }
void launch(int sms,int count){ cudaEvent_t e0,e1; cudaEventCreate(&e0); cudaEventCreate(&e1); float ms; char p[64]; for(int g: {1,sms,sms*8,sms*64,sms*512}) for(int th: {32,256,1024}){ empty<<<g,th>>>(); CK(cudaDeviceSynchronize()); cudaEventRecord(e0); for(int i=0;i<count;i++) empty<<<g,th>>>(); cudaEventRecord(e1); CK(cudaEventSynchronize(e1)); cudaEventElapsedTime(&ms,e0,e1); sprintf(p,"blocks=%d threads=%d",g,th); row("empty_kernel",p,ms*1000/count,"us/launch back to back"); } }

#include <string>
int main(int argc,char**argv){ std::string parts="+"+std::string(argc>1?argv[1]:"lat")+"+"; int sms=132;
auto part=[&](const char*name){ return parts.find("+"+std::string(name)+"+")!=std::string::npos; };
#define L(N,S) lat("latency_" #N,lat_##N,S,32)
if(part("lat")){ L(iadd_lop_pair,3);L(imad,3);L(prmt,3);L(shl,3);L(popc,3);L(imad_wide,3ll);L(fadd,1.5f);L(fmul,1.5f);L(ffma,1.5f);L(dadd,1.5);L(dfma,1.5);L(ex2,1.5f);L(lg2,1.5f);L(rsqrt,1.5f);L(sin,1.5f);L(i2f2i,3);L(setp_selp_pair,3);L(vote,3);L(redux,3);L(match,3);L(hfma2,0x3c003c00u);L(lds,1);L(atoms,1);
 for(int t: {32,64,128,256,512,1024}) lat("latency_barrier",lat_bar,1,t);}
if(part("thr")){ thr("throughput_ffma",thr_ffma,1.5f);thr("throughput_iadd_lop_pair",thr_iadd,3);thr("throughput_imad",thr_imad,3);thr("throughput_dfma",thr_dfma,1.5);thr("throughput_ex2",thr_ex2,1.5f);thr("throughput_popc",thr_popc,3);}
if(part("lds")){lds<1>();lds<2>();}
if(part("ldg")){ldg<1>();ldg<2>();ldg<4>();}
if(part("mem")) mem_lat(argc>2?atol(argv[2])<<10:0, argc>3?atol(argv[3])<<10:1<<20);
if(part("bw")) bw(sms,(size_t)atol(argv[2])<<20,atoi(argv[3]),atoi(argv[4]),argc>5?atoi(argv[5]):0);
if(part("atom")) atomics(sms);
if(part("launch")) launch(sms,argc>2?atoi(argv[2]):100);
return 0;}
