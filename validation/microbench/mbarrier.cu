// State of mbarriers after each operation; tokens of warps; time of try_wait.
#include <cstdio>
#include <cstdint>
#include <cstring>
#include <cuda_runtime.h>
#define CK(x) do{cudaError_t e=(x); if(e!=cudaSuccess){printf("error %s line %d: %s\n",#x,__LINE__,cudaGetErrorName(e));return 1;}}while(0)
struct Op{int what; unsigned n;};
__device__ unsigned sa(const void*p){return (unsigned)__cvta_generic_to_shared(p);}
__global__ void run(const Op*ops,int count,unsigned long long*out){
  __shared__ alignas(16) unsigned long long bar[2]; __shared__ alignas(16) int buf[64];
  unsigned b=sa(bar); unsigned long long tok=0; unsigned pred=0;
  for(int i=0;i<count;i++){ unsigned n=ops[i].n; tok=0; pred=0;
    switch(ops[i].what){
    case 0: asm volatile("mbarrier.init.shared.b64 [%0],%1;"::"r"(b),"r"(n):"memory");break;
    case 1: asm volatile("mbarrier.arrive.shared.b64 %0,[%1];":"=l"(tok):"r"(b):"memory");break;
    case 2: asm volatile("mbarrier.arrive.shared.b64 %0,[%1],%2;":"=l"(tok):"r"(b),"r"(n):"memory");break;
    case 3: asm volatile("mbarrier.arrive.noComplete.shared.b64 %0,[%1],%2;":"=l"(tok):"r"(b),"r"(n):"memory");break;
    case 4: asm volatile("mbarrier.arrive_drop.shared.b64 %0,[%1];":"=l"(tok):"r"(b):"memory");break;
    case 5: asm volatile("mbarrier.arrive_drop.shared.b64 %0,[%1],%2;":"=l"(tok):"r"(b),"r"(n):"memory");break;
    case 6: asm volatile("mbarrier.arrive.expect_tx.shared.b64 %0,[%1],%2;":"=l"(tok):"r"(b),"r"(n):"memory");break;
    case 7: asm volatile("mbarrier.expect_tx.relaxed.cta.shared.b64 [%0],%1;"::"r"(b),"r"(n):"memory");break;
    case 8: asm volatile("mbarrier.complete_tx.relaxed.cta.shared.b64 [%0],%1;"::"r"(b),"r"(n):"memory");break;
    case 9: asm volatile("mbarrier.arrive_drop.expect_tx.shared.b64 %0,[%1],%2;":"=l"(tok):"r"(b),"r"(n):"memory");break;
    case 10: asm volatile("{.reg .pred p; mbarrier.test_wait.parity.shared.b64 p,[%1],%2; selp.u32 %0,1,0,p;}":"=r"(pred):"r"(b),"r"(n):"memory");break;
    case 11: asm volatile("mbarrier.inval.shared.b64 [%0];"::"r"(b):"memory");break;
    case 12: asm volatile("mbarrier.arrive_drop.noComplete.shared.b64 %0,[%1],%2;":"=l"(tok):"r"(b),"r"(n):"memory");break;
    case 13: asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _,[%0],%1;"::"r"(b),"r"(n):"memory");break;
    case 14: asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];"::"r"(b):"memory");break;
    case 15: asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];"::"r"(b):"memory");break;
    case 16: asm volatile("mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _,[%0],%1;"::"r"(b),"r"(n):"memory");break;
    case 17: *(volatile unsigned long long*)bar=n;break;
    case 18: ((volatile unsigned*)bar)[1]=n;break;
    case 19: ((volatile unsigned*)bar)[0]=n;break;
    }
    if(ops[i].what==14||ops[i].what==15) for(int j=0;j<200;j++) asm volatile("nanosleep.u32 20;");
    __threadfence_block();
    out[3*i]=tok; out[3*i+1]=*(volatile unsigned long long*)bar; out[3*i+2]=pred;
  }
}
__global__ void warp(int mode,unsigned init,unsigned n,unsigned mask,unsigned long long*out,unsigned long long*st){
  __shared__ alignas(16) unsigned long long bar[2]; unsigned b=sa(bar);
  if(threadIdx.x==0) asm volatile("mbarrier.init.shared.b64 [%0],%1;"::"r"(b),"r"(init):"memory");
  __syncthreads(); unsigned long long tok=~0ull;
  if(mask>>(threadIdx.x&31)&1){
   if(mode==0) asm volatile("mbarrier.arrive.shared.b64 %0,[%1];":"=l"(tok):"r"(b):"memory");
   if(mode==1) asm volatile("mbarrier.arrive.shared.b64 %0,[%1],%2;":"=l"(tok):"r"(b),"r"(n):"memory");
   if(mode==2) asm volatile("mbarrier.arrive.noComplete.shared.b64 %0,[%1],%2;":"=l"(tok):"r"(b),"r"(n):"memory");
   if(mode==3) asm volatile("mbarrier.arrive.expect_tx.shared.b64 %0,[%1],%2;":"=l"(tok):"r"(b),"r"(n):"memory");
   if(mode==4) asm volatile("mbarrier.arrive_drop.shared.b64 %0,[%1];":"=l"(tok):"r"(b):"memory");
   if(mode==5) asm volatile("mbarrier.arrive_drop.noComplete.shared.b64 %0,[%1],%2;":"=l"(tok):"r"(b),"r"(n):"memory");
   if(mode==6) asm volatile("mbarrier.arrive.shared.b64 %0,[%1],%2;":"=l"(tok):"r"(b),"r"(threadIdx.x+1):"memory");
   if(mode==7) asm volatile("mbarrier.arrive.shared.b64 %0,[%1];":"=l"(tok):"r"(b+8*(threadIdx.x&1)):"memory");
   if(mode==8) asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];"::"r"(b):"memory");
   if(mode==9) asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];"::"r"(b):"memory");
  }
  for(int j=0;j<100;j++) asm volatile("nanosleep.u32 20;");
  __syncthreads(); out[threadIdx.x]=tok; if(threadIdx.x==0){st[0]=*(volatile unsigned long long*)bar;}
}
// Time of try_wait that does not succeed, and of operations that do.
__global__ void times(unsigned hint,int use,long long*out){
  __shared__ alignas(16) unsigned long long bar[2]; unsigned b=sa(bar); unsigned p,q; unsigned long long tok;
  if(threadIdx.x==0){asm volatile("mbarrier.init.shared.b64 [%0],%1;"::"r"(b),"r"(1000000u):"memory");asm volatile("mbarrier.init.shared.b64 [%0],%1;"::"r"(b+8),"r"(1u):"memory");}
  __syncthreads();
  long long t0=clock64();
  if(use) asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared.b64 p,[%1],%2,%3; selp.u32 %0,1,0,p;}":"=r"(p):"r"(b),"r"(0),"r"(hint):"memory");
  else asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared.b64 p,[%1],%2; selp.u32 %0,1,0,p;}":"=r"(p):"r"(b),"r"(0):"memory");
  long long t1=clock64()+(p&0);
  asm volatile("{.reg .pred p; mbarrier.test_wait.parity.shared.b64 p,[%1],%2; selp.u32 %0,1,0,p;}":"=r"(q):"r"(b),"r"(0):"memory");
  long long t2=clock64()+(q&0);
  asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared.b64 p,[%1],%2; selp.u32 %0,1,0,p;}":"=r"(q):"r"(b),"r"(1):"memory");
  long long t3=clock64()+(q&0);
  asm volatile("mbarrier.arrive.shared.b64 %0,[%1];":"=l"(tok):"r"(b):"memory");
  long long t4=clock64()+(tok&0);
  if(threadIdx.x==0){out[0]=t1-t0;out[1]=t2-t1;out[2]=t3-t2;out[3]=t4-t3;out[4]=p;}
}
// A warp waits in try_wait, another arrives after a while: how long until the waiter goes on.
__global__ void wake(long long*out,int delay){
  __shared__ alignas(16) unsigned long long bar[2]; __shared__ long long at; unsigned b=sa(bar); unsigned p=0; unsigned long long tok;
  if(threadIdx.x==0) asm volatile("mbarrier.init.shared.b64 [%0],%1;"::"r"(b),"r"(1u):"memory");
  __syncthreads(); long long t0=clock64(),t1=0; int n=0;
  if(threadIdx.x<32){ do{ asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared.b64 p,[%1],%2; selp.u32 %0,1,0,p;}":"=r"(p):"r"(b),"r"(0):"memory"); n++; }while(!p); t1=clock64(); }
  else if(threadIdx.x==32){ while(clock64()-t0<delay); at=clock64(); asm volatile("mbarrier.arrive.shared.b64 %0,[%1];":"=l"(tok):"r"(b):"memory"); }
  __syncthreads(); if(threadIdx.x==0){out[0]=t1-at;out[1]=n;out[2]=t1-t0;}
}
#include <cstdlib>
int main(int argc,char**argv){ const char*md=argc>1?argv[1]:"all"; int ix=argc>2?atoi(argv[2]):0;
  unsigned long long*o;CK(cudaMallocManaged(&o,1<<20)); Op*ops;CK(cudaMallocManaged(&ops,1<<16)); auto*st=o+100000;
  static const char*names[]={"init","arrive","arrive_n","arrive_nc","drop","drop_n","arrive_tx","expect_tx","complete_tx","drop_tx","test_parity","inval","drop_nc","remote_arrive_n","cp_arrive","cp_arrive_noinc","remote_arrive_tx","store64","store_hi","store_lo"};
  struct S{const char*name;Op l[24];int n;} seq[]={
   {"plain",{{0,3},{1,0},{1,0},{10,0},{1,0},{10,0},{1,0},{2,2},{10,1}},9},
   {"counts",{{0,1},{1,0},{1,0},{1,0},{0,1048575},{2,1048574},{1,0},{0,5},{2,5},{2,5},{2,3},{2,2}},12},
   {"nocomplete",{{0,10},{3,1},{3,4},{3,4},{1,0},{3,9},{1,0}},7},
   {"drop",{{0,4},{4,0},{1,0},{1,0},{1,0},{1,0},{1,0},{1,0},{5,2},{1,0},{1,0}},11},
   {"drop_nc",{{0,8},{12,3},{2,5},{2,5},{2,5}},5},
   {"tx",{{0,2},{7,16},{8,16},{6,128},{8,100},{8,28},{1,0},{6,64},{1,0},{10,1},{8,64},{10,1},{10,0}},13},
   {"tx_early",{{0,1},{8,32},{6,32},{8,1048575},{6,1048575},{7,1048575},{8,1048575},{1,0}},8},
   {"tx_neg",{{0,2},{8,1},{8,1},{7,1},{7,1},{1,0},{8,5},{1,0},{7,5},{10,0},{10,1}},11},
   {"drop_tx",{{0,3},{9,48},{1,0},{1,0},{8,48},{1,0},{1,0}},7},
   {"remote",{{0,3},{13,2},{13,1},{16,24},{13,2},{8,24}},6},
   {"cp",{{0,2},{14,0},{1,0},{14,0},{15,0},{1,0},{15,0}},7},
   {"inval",{{0,7},{2,3},{11,0},{0,2},{1,0}},5},
   {"raw",{{17,0},{1,0},{1,0},{17,1},{1,0},{17,2},{1,0},{18,0x7ffff800},{1,0},{1,0},{19,0x1fffff},{1,0},{1,0},{1,0}},14},
   {"overflow",{{0,1},{2,2},{1,0},{0,1},{2,3},{2,0},{0,2},{2,0},{8,0},{7,0},{0,0},{1,0},{0,1048576},{1,0}},14},
   {"drop_out",{{0,2},{4,0},{4,0},{1,0}},4},
   {"over1",{{0,1},{2,2}},2},
   {"over2",{{0,2},{1,0},{2,2}},3},
   {"zero",{{0,2},{2,0},{8,0},{7,0},{1,0}},5},
   {"init0",{{0,0},{1,0}},2},
   {"initmax",{{0,1048576},{1,0},{1,0}},3},
   {"txneg2",{{0,1},{8,1},{10,0},{7,1},{10,0},{1,0},{10,0}},7},
   {"txover",{{0,1},{7,1048575},{7,1},{10,0}},4},
   {"txover2",{{0,1},{7,1048575},{7,1048575},{7,1048575},{8,1048575},{1,0}},6},
   {"txneg3",{{0,1},{8,1048575},{8,1},{8,1},{1,0}},5},
   {"pendtx",{{0,2},{6,8},{1,0},{1,0},{10,0},{8,8},{10,0}},7},
   {"rawhi",{{17,0},{18,0x7ffff000},{19,0x1ffffe},{1,0},{1,0},{1,0},{10,0}},7},
   {"reinit",{{0,3},{1,0},{0,3},{1,0},{11,0},{17,77},{0,2},{1,0},{11,0}},9},
   {"txbig",{{0,1},{7,0xfffff},{7,1},{7,0xfffff},{8,0xfffff},{8,0xfffff},{8,0xfffff},{0,1},{7,0x200000},{7,0x400000},{7,0x800000},{7,0xffffffff},{1,0}},13},
  };
  if(!strcmp(md,"seq")) { auto&s=seq[ix]; if(ix>=(int)(sizeof(seq)/sizeof(seq[0]))) return 9; memcpy(ops,s.l,sizeof(s.l)); run<<<1,1>>>(ops,s.n,o); cudaError_t e=cudaDeviceSynchronize(); if(e){printf("seq %s: %s\n",s.name,cudaGetErrorName(e));return 1;}
   for(int i=0;i<s.n;i++) printf("state,%s,%s,%u,%016llx,%016llx,%llu\n",s.name,names[s.l[i].what],s.l[i].n,o[3*i],o[3*i+1],o[3*i+2]); return 0; }
  struct W{int mode;unsigned init,n,mask;} w[]={{0,64,0,~0u},{0,32,0,~0u},{0,16,0,~0u},{0,20,0,~0u},{1,100,2,~0u},{1,64,2,~0u},{2,1000,3,~0u},{2,1000,3,0x0f0f0f0f},{3,64,16,~0u},{3,32,16,~0u},{4,64,0,~0u},{4,32,0,~0u},{5,1000,2,~0u},{6,1000,0,~0u},{0,8,0,0xff00},{0,64,0,0xff00},{0,1,0,~0u},{7,64,0,~0u},{8,64,0,~0u},{9,64,0,~0u}};
  if(!strcmp(md,"warp")) { if(ix>=(int)(sizeof(w)/sizeof(w[0]))) return 9; auto&x=w[ix]; warp<<<1,32>>>(x.mode,x.init,x.n,x.mask,o,st); CK(cudaDeviceSynchronize()); printf("warp,%d,%u,%u,%08x,%016llx",x.mode,x.init,x.n,x.mask,st[0]); for(int i=0;i<32;i++)printf(",%llx",o[i]); printf("\n"); return 0; }
  long long*t=(long long*)o; for(int r=0;r<3;r++){ times<<<1,32>>>(0,0,t);CK(cudaDeviceSynchronize()); printf("time,default,%lld,%lld,%lld,%lld,%lld\n",t[0],t[1],t[2],t[3],t[4]);
  for(unsigned h:{0u,1u,10u,100u,1000u,5000u,10000u,20000u,100000u,1000000u,10000000u,0xffffffffu}){ times<<<1,32>>>(h,1,t);CK(cudaDeviceSynchronize()); printf("time,%u,%lld,%lld,%lld,%lld,%lld\n",h,t[0],t[1],t[2],t[3],t[4]);}}
  for(int d:{100,500,2000,10000,100000,1000000}) for(int r=0;r<2;r++){ wake<<<1,64>>>(t,d);CK(cudaDeviceSynchronize()); printf("wake,%d,%lld,%lld,%lld\n",d,t[0],t[1],t[2]);}
}
